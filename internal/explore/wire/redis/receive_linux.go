package redis

import (
	"fmt"
	"strings"

	"github.com/oversell/oversell/internal/explore/wire"
)

// Receive implements wire.Session. In RESP3, a push has its own type. The confirmations of SUBSCRIBE
// have that type too, but answer the command. In RESP2 a push is an array that begins with "message",
// "pmessage" or "smessage", on a connection with a subscription. On such a connection, Redis accepts no
// command that could have this answer.
func (s *session) Receive(current *wire.Command) (wire.Message, error) {
	v, raw, err := s.answers.message()
	if err != nil {
		return wire.Message{}, fmt.Errorf("redis: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := wire.Message{Raw: raw}
	a := s.asked[current]
	word := heading(&v)
	switch {
	case v.kind != '>' && (s.resp3 || word == ""):
		word = ""
	case a != nil && a.listens != "" && word == a.listens:
		if a.left == 0 {
			a.left = s.heard.confirmations(word)
		}
		a.left--
		m.Ends = a.left == 0
		s.heard.confirmed(word, &v)
		if m.Ends {
			s.end(current, a, &v)
		}
		return m, nil
	case v.kind == '>', !s.heard.none():
		if strings.HasSuffix(word, "subscribe") {
			s.heard.confirmed(word, &v) // Redis ends the subscription to a shard that has moved
		}
		m.Push, m.Text = true, pushText(&v)
		return m, nil
	}
	m.Ends = true
	if a != nil {
		s.end(current, a, &v)
		if a.mute {
			m.Raw = nil
		}
	}
	return m, nil
}

func (s *session) end(o *wire.Command, a *asked, v *value) {
	delete(s.asked, o)
	o.Answer.Text = answerText(v)
	o.Answer.Changed, o.Answer.Failed = a.judge(v)
	s.settle(a, v)
}

func (s *session) settle(a *asked, v *value) {
	if a.runs != nil && v.kind == '*' && !v.null {
		for i, b := range a.runs.queue[:min(len(a.runs.queue), len(v.items))] {
			s.settle(b, &v.items[i])
		}
		return
	}
	refused := v.isError() || v.null
	switch {
	case refused && a.begins != nil && s.open == a.begins:
		s.open = nil
	case refused && s.database == a.after:
		s.database = a.before
	case refused:
	case a.hello != 0:
		s.resp3 = a.hello == 3
	case a.Name == "RESET":
		s.resp3, s.heard = false, newChannels()
	}
}

// TimedOut implements wire.Session. After CLIENT UNBLOCK id TIMEOUT the server itself answers as after
// the command's own timeout, so nothing has to change.
func (s *session) TimedOut(_ *wire.Command, raw []byte) []byte { return raw }

// pushText returns a message for people: "message news hello".
func pushText(v *value) string {
	text := answerText(v)
	return strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
}
