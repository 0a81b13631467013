package redis

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/wire"
)

// Protocol is the protocol of Redis, RESP2 and RESP3, without TLS.
func Protocol() wire.Protocol {
	return wire.Protocol{Name: "redis", Open: func(program, server *wire.Socket) wire.Session {
		return newSession(program, server)
	}}
}

// A session is one connection.
type session struct {
	program, server *wire.Socket
	refusals        io.Writer // writes to the program
	requests        reader    // used by Next
	answers         reader    // used by Receive
	begun           bool      // used by Next: the program has sent something

	mu       sync.Mutex
	asked    map[*wire.Command]*asked
	open     *transaction // nil if no MULTI is open
	database int          // selected by SELECT
	resp3    bool
	off      bool // CLIENT REPLY OFF
	skip     bool // CLIENT REPLY SKIP applies to the next command
	heard    channels
}

func newSession(program, server *wire.Socket) *session {
	return &session{
		program: program, server: server, refusals: program,
		requests: reader{from: program.R}, answers: reader{from: server.R},
		asked: map[*wire.Command]*asked{}, heard: newChannels(),
	}
}

// Login asks for the client id and hides the answer from the program. A server with a password refuses the question
// until it has the password. Then Login relays the program's commands until AUTH or HELLO succeeds; before that,
// the server executes nothing else, so nothing has to wait at the gate. Login has no time limit, and Gate.Busy does
// not count its time. The id is 0 if the user may not ask for it (ACL).
func (s *session) Login() (int64, error) {
	for {
		id, locked, err := s.ask()
		if err != nil || !locked {
			return id, err
		}
		if err := s.authenticate(); err != nil {
			return 0, err
		}
	}
}

// ask sends CLIENT ID. The result `locked` reports that the server wants a password first.
func (s *session) ask() (id int64, locked bool, err error) {
	if _, err := s.server.Write(encode([][]byte{[]byte("CLIENT"), []byte("ID")})); err != nil {
		return 0, false, err
	}
	v, raw, err := s.answers.message()
	if err != nil {
		return 0, false, err
	}
	if v.kind == ':' {
		id, err := strconv.ParseInt(string(v.text), 10, 64)
		return id, false, err
	}
	for _, gone := range []string{"DENIED ", "ERR max number of clients"} {
		if v.isError() && bytes.HasPrefix(v.text, []byte(gone)) {
			_, err := s.refusals.Write(raw)
			return 0, false, errors.Join(fmt.Errorf("redis: %s", answerText(&v)), err)
		}
	}
	return 0, v.isError() && bytes.HasPrefix(v.text, []byte("NOAUTH")), nil
}

// authenticate relays until the server has accepted the password. While it waits for the program, Busy
// counts neither socket.
func (s *session) authenticate() error {
	for {
		s.server.Rest()
		s.program.Rest()
		o, err := s.Next()
		if err != nil {
			return err
		}
		s.mu.Lock()
		name := s.asked[o].Name
		s.mu.Unlock()
		if _, err := s.server.Write(o.Raw); err != nil {
			return err
		}
		for ends := false; !ends; {
			m, err := s.Receive(o)
			if err != nil {
				return err
			}
			if _, err := s.program.Write(m.Raw); err != nil {
				return err
			}
			ends = m.Ends
		}
		switch {
		case name == "QUIT":
			return io.EOF
		case (name == "AUTH" || name == "HELLO") && !o.Answer.Failed:
			return nil
		}
	}
}

// Next implements wire.Session.
func (s *session) Next() (*wire.Command, error) {
	if !s.begun {
		first, err := s.requests.from.Peek(1)
		if err != nil {
			return nil, err
		}
		if first[0] == 0x16 { // a handshake record: RFC 8446, section 5.1
			return nil, s.refuse("the program asks for TLS at redis (rediss://); use redis:// for the test")
		}
		s.begun = true
	}
	q, err := s.requests.request()
	var wrong malformed
	if errors.As(err, &wrong) {
		return nil, s.refuse("Protocol error: " + err.Error())
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.command(&q)
}

func (s *session) refuse(why string) error {
	_, _ = s.refusals.Write([]byte("-ERR " + why + "\r\n"))
	return &wire.Refused{Why: why}
}

func (s *session) command(q *request) (*wire.Command, error) {
	a := newAsked(q.args)
	sub := a.Sub
	if why := unframed(a.Name, sub, effect.RedisWord(q.args, 2)); why != "" {
		return nil, s.refuse(why)
	}
	replies := a.Name == "CLIENT" && sub == "REPLY"
	if s.open != nil && (a.listens != "" || replies) {
		return nil, s.refuse("the program sends " + a.text + " within MULTI, where its answers cannot be told apart: send it before")
	}
	o := &wire.Command{Raw: q.raw}
	before := s.database
	if before != 0 {
		o.Text = fmt.Sprintf("db %d: ", before)
	}
	switch {
	case replies && len(q.args) == 3:
		o.Raw = s.reply(a, q, effect.RedisWord(q.args, 2))
	default:
		if a.Name == "RESET" {
			s.off = false
		}
		// Redis confirms subscriptions even without replies (CLIENT_PUSHING).
		a.mute = (s.off || s.skip) && a.listens == ""
		s.skip = false
	}
	if a = s.transact(a); a.gated {
		o.Limit, o.Unlimited = limit(q)
	}
	a.before, a.after = before, s.database
	o.Text, o.Gated, o.Effect = o.Text+a.text, a.gated, a.effect
	s.asked[o] = a
	return o, nil
}

// unframed returns the reason for refusing a command after which answers cannot be told from other
// messages; "": none.
func unframed(name, sub, word string) string {
	switch name {
	case "MONITOR", "SYNC", "PSYNC":
		return "the program sends " + name + " to redis, after which answers cannot be told apart: leave it out for the test"
	case "SCRIPT":
		if sub == "DEBUG" && !strings.EqualFold(word, "NO") {
			return "the program debugs a script in redis (SCRIPT DEBUG): leave it out for the test"
		}
	}
	return ""
}

// reply returns the bytes to send for a CLIENT REPLY, such that the server always answers.
func (s *session) reply(a *asked, q *request, mode string) []byte {
	switch mode {
	case "ON":
		s.off, s.skip = false, false
		return q.raw
	case "OFF":
		s.off = true
	case "SKIP":
		s.skip = !s.off
	default:
		a.mute, s.skip = s.off || s.skip, false
		return q.raw
	}
	a.mute = true
	return encode([][]byte{[]byte("CLIENT"), []byte("REPLY"), []byte("ON")})
}

// transact handles MULTI and the commands that end it. It returns the command itself or, if Redis only
// queues it, a placeholder for the answer QUEUED.
func (s *session) transact(a *asked) *asked {
	switch {
	case a.Name == "RESET":
		s.open, s.database = nil, 0
	case s.open == nil && a.Name == "MULTI":
		s.open = &transaction{}
		a.begins = s.open
	case s.open == nil && a.Name == "EXEC":
		a.effect = schedule.Reads // Redis refuses an EXEC without MULTI
	case s.open == nil:
		s.use(a)
	case a.Name == "EXEC":
		a.runs, a.effect, a.text = s.open, s.open.effect(), s.open.text()
		for _, b := range s.open.queue {
			s.use(b)
		}
		s.open = nil
	case a.Name == "DISCARD":
		s.open = nil
	case a.Name == "WATCH", a.Name == "MULTI":
		a.gated, a.effect = false, schedule.Local // Redis refuses the command within MULTI
	case a.Name == "QUIT":
	default:
		s.open.queue = append(s.open.queue, a)
		return &asked{text: a.text, effect: schedule.Local, mute: a.mute, db: -1}
	}
	return a
}

// use records the selected database before the answer comes, since the program may already have sent
// more commands.
func (s *session) use(a *asked) {
	if a.db >= 0 {
		s.database = a.db
	}
}
