// Package mysql is the protocol between MySQL's and MariaDB's clients and servers, as a
// gate sees it (MySQL Source Code Documentation, "Client/Server Protocol"; MariaDB
// Knowledge Base, "Clients & Utilities, Client/Server Protocol").
//
//	login_linux.go    greeting and authentication; what is struck from them
//	command_linux.go  what a program sends: what it is called, whether it waits
//	execute_linux.go  the values of prepared statements
//	answer_linux.go   where an answer ends, and what it says
//	row_linux.go      rows for people, of both encodings
//	timeout_linux.go  an interrupted statement as a lock wait that took too long
//
// Struck, so that a client does without: compression, TLS, LOAD DATA LOCAL, query
// attributes, and the newer ways to end or shorten a result (CLIENT_DEPRECATE_EOF,
// CLIENT_OPTIONAL_RESULTSET_METADATA, MariaDB's extended capabilities). All else reaches
// the other side byte for byte.
//
// A lock wait must not end by the clock, so each connection gets an
// innodb_lock_wait_timeout and a lock_wait_timeout of an hour when it has logged in, and
// again after each command that may have changed them. A program that asks for them is
// told 3600. Not covered: FOR UPDATE WAIT n and SET STATEMENT of MariaDB, and the
// time-out of GET_LOCK (Command.Limit), which end by the clock as before.
//
// The tests speak to MariaDB 10.11. MySQL 8 and its caching_sha2_password are written
// after the document and have not been run.
package mysql

import (
	"errors"
	"io"
	"sync"
	"syscall"

	"github.com/oversell/oversell/internal/explore/wire"
)

// Protocol is MySQL's and MariaDB's.
func Protocol() wire.Protocol {
	return wire.Protocol{Name: "mysql", Open: func(program, server *wire.Socket) wire.Session {
		return &session{
			program: program, server: server, requests: map[*wire.Command]*request{},
			state: state{prepared: map[uint32]*prepared{}, long: map[uint32]map[int][]byte{}},
		}
	}}
}

// A session is a wire.Session.
type session struct {
	program, server *wire.Socket

	// Of the goroutine that calls Receive.
	from assembler
	own  *answer // to a command of the session's own, which the program does not see
	does *request

	mu         sync.Mutex                 // of all below
	requests   map[*wire.Command]*request // read, and not answered
	binaryLock bool                       // the last answer to a command for a lock by name had rows of a prepared statement
	state
}

// A state is what a connection is in, as far as it is known. From it and from the text of a
// command it says what the command does.
type state struct {
	long map[uint32]map[int][]byte // values that STMT_SEND_LONG_DATA has sent, by statement and place

	prepared       map[uint32]*prepared
	last           *prepared // of MariaDB: statement -1
	open           bool      // a transaction is, as far as the server has said
	holds          bool      // it may have locks by name or of tables
	unsettled      int       // commands without an answer that may open a transaction
	serializable   bool      // a SELECT may take locks
	weak           bool      // a write may leave the rows that it reads unlocked
	authenticating bool      // by CHANGE_USER
}

// A prepared statement. What it says is set when it is read, its number and the rest
// when the server has answered.
type prepared struct {
	sql     string
	said    said
	params  int
	types   []byte   // two bytes a parameter, as last sent; of the goroutine that calls Next
	columns []column // of its cursor; of the goroutine that calls Receive
}

// A request is what Receive must know of a command.
type request struct {
	answer   answer
	settles  bool // it is counted in unsettled
	setsWait bool // the lock wait may be another one now
	resets   bool // the connection is as new: CHANGE_USER, RESET_CONNECTION
	prepares *prepared
	executes *prepared // and columns are remembered, for a cursor
	fetches  *prepared
	verb     string
}

// Next is wire.Session's.
//
// QUIT is no command: it is handed on, and the program has hung up. The server closes its
// end at once, and which of the two was first would otherwise be chance.
func (s *session) Next() (*wire.Command, error) {
	raw, payload, err := readPacket(s.program.R)
	if err != nil {
		return nil, hungUp(err)
	}
	if len(payload) == 1 && payload[0] == comQuit {
		_, _ = s.server.Write(raw) // it may have gone already
		return nil, io.EOF
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, q, err := s.command(raw, payload)
	if err != nil {
		return nil, err
	}
	if !c.Silent {
		s.requests[c] = q
		if q.settles {
			s.unsettled++
		}
	}
	return c, nil
}

// hungUp: a program that is killed ends its connection in several ways.
func hungUp(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) {
		return io.EOF
	}
	return err
}

// Receive is wire.Session's. It takes what there is and never waits for the rest of a
// packet: a server may stop within a row, for a lock on the next one.
func (s *session) Receive(current *wire.Command) (m wire.Message, err error) {
	if current == nil {
		return s.lastWords()
	}
	if s.does == nil {
		s.mu.Lock()
		s.does = s.requests[current]
		s.mu.Unlock()
		if s.does == nil {
			return m, errors.New("an answer to a command that this session has not read")
		}
		if s.does.fetches != nil {
			s.does.answer.columns = s.does.fetches.columns
		}
	}
	there, err := s.server.R.Peek(s.server.R.Buffered())
	if err != nil {
		return m, err
	}
	used := 0
	for used < len(there) && !m.Ends {
		n, whole := s.from.take(there[used:])
		if s.own == nil {
			m.Raw = append(m.Raw, there[used:used+n]...)
		}
		used += n
		if !whole {
			continue
		}
		if m.Ends, err = s.packet(current); err != nil {
			return m, err
		}
	}
	_, err = s.server.R.Discard(used)
	return m, err
}

// packet is one of an answer, whole.
func (s *session) packet(current *wire.Command) (ends bool, err error) {
	if s.own != nil {
		if ends, err = s.own.feed(s.from.payload, s.from.size); ends {
			err = errors.Join(err, s.own.refusal())
			s.own = nil
		}
	} else if ends, err = s.does.answer.feed(s.from.payload, s.from.size); ends && s.answered(current, s.does) && !s.program.Timed() {
		// Nobody else writes now: the program's next command waits for the end of this one.
		s.own, ends = &answer{}, false
		_, err = s.server.Write(query(setWait))
	}
	if ends {
		s.does = nil
	}
	return ends, err
}

// lastWords is a packet that answers nothing: the server says why it hangs up (MariaDB
// 1927, MySQL 4031).
func (s *session) lastWords() (wire.Message, error) {
	raw, payload, err := readPacket(s.server.R)
	if err != nil {
		return wire.Message{}, err
	}
	var a answer
	if _, err := a.feed(payload, len(payload)); err != nil || !a.failed() {
		return wire.Message{}, errors.New("it has answered what nobody has asked")
	}
	return wire.Message{Raw: raw, Push: true, Text: a.text("")}, nil
}

// answered fills the answer in, and reports whether the lock wait must be set again before
// the program hears of it.
func (s *session) answered(c *wire.Command, q *request) (again bool) {
	a := &q.answer
	a.fill(c, q.verb)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.requests, c)
	if q.settles {
		s.unsettled--
	}
	if a.stated {
		s.open = a.status&statusInTransaction != 0
	}
	if a.failed() && endsTransaction[a.code] {
		s.open = false
	}
	if c.Named {
		s.binaryLock = a.binary
	}
	if a.failed() {
		if q.answer.kind == authenticates {
			s.authenticating = false
		}
		return false
	}
	if q.prepares != nil {
		q.prepares.params = a.params
		s.prepared[a.id] = q.prepares
	}
	if q.executes != nil {
		q.executes.columns = a.columns
	}
	if q.resets && a.complete {
		s.authenticating, s.holds, s.last = false, false, nil
		clear(s.prepared)
		return true
	}
	return q.setsWait
}
