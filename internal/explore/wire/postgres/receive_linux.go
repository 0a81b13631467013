package postgres

import (
	"slices"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/oversell/oversell/internal/explore/wire"
)

// Receive implements wire.Session. After an error, the server may discard everything up to a Sync.
// Receive then marks the commands that get no answer as Silent, before they are sent.
func (s *Session) Receive(current *wire.Command) (wire.Message, error) {
	f, err := readFrame(s.server.R)
	if err != nil {
		return wire.Message{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := wire.Message{Raw: f}
	if current != nil && (current.Step() == wire.Begins || current.Step() == wire.Commits) {
		return step(current, f)
	}
	i := slices.IndexFunc(s.calls, func(c *call) bool { return current != nil && c.command == current })
	if i < 0 {
		m.Push, m.Text = pushed(f)
		return m, nil
	}
	c := s.calls[i]
	if f.kind() == 'Z' && current.Step() == wire.Executes && len(f.body()) > 0 {
		f.body()[0] = 'I' // the program has begun no transaction
	}
	if m.Ends = s.feed(c, f); m.Ends {
		s.calls = slices.Delete(s.calls, i, i+1)
		if c.refused && c.extended && !c.synced {
			s.skip()
		}
		s.hasCopy(f.kind() == 'G')
		c.answer.fill(&c.command.Answer)
		c.command.Answer.Open = s.status != 'I' || s.implicit
	}
	return m, nil
}

// hasCopy handles data that the program sent before the server asked for it. If `wanted` is false, no
// COPY takes the data, so the server discards it.
func (s *state) hasCopy(wanted bool) {
	for len(s.calls) > 0 && s.calls[0].awaits {
		next := s.calls[0]
		if wanted {
			next.awaits, s.copying = false, noCopy
			return
		}
		next.orphaned()
		if next.command.Silent {
			s.calls = s.calls[1:]
		}
	}
}

// pushed reports whether the server sends a message of this type by itself, and returns its text.
func pushed(f frame) (push bool, shown string) {
	switch f.kind() {
	case 'A':
		var m pgproto3.NotificationResponse
		_ = m.Decode(f.body())
		return true, wire.Shorten("NOTIFY " + m.Channel + " " + m.Payload)
	case 'S':
		var m pgproto3.ParameterStatus
		_ = m.Decode(f.body())
		return true, wire.Shorten(m.Name + "=" + m.Value)
	case 'N':
		return true, wire.Shorten("notice: " + errorOf(f).Message)
	case 'E': // the last message of a server that hangs up
		return true, wire.Shorten(errorText(errorOf(f)))
	}
	return false, ""
}

// skip handles an error in a batch that ended with a Flush: the server continues at the next Sync
// (PostgreSQL 15 manual, 55.2.3).
func (s *state) skip() {
	s.skips = true
	s.implicit = false
	s.calls = slices.DeleteFunc(s.calls, func(c *call) bool {
		if s.skips && c.extended && c.synced {
			s.skips = false
		}
		if s.skips {
			c.command.Silent = true
		}
		return s.skips
	})
}

// settle applies the status of a ReadyForQuery. After the end of a transaction, settle forgets the
// facts about it, unless the program has already sent more commands.
func (s *state) settle(f frame) {
	if len(f.body()) > 0 {
		s.status = f.body()[0]
	}
	if s.status == 'I' && len(s.calls) <= 1 {
		clear(s.portals)
		s.snapshots, s.serial = s.isolated, s.serialized
	}
}

// feed adds a message to an answer and reports whether it ends the answer.
func (s *state) feed(c *call, f frame) (ends bool) {
	if !c.begun {
		c.begun = true
		c.opened = c.opened || s.status == 'T'
	}
	switch f.kind() {
	case 'Z':
		s.settle(f)
		return true
	case 'E':
		c.refused = true
		c.answer.fails(f, c.opened)
		s.undo(c)
		return fatal(f) || c.extended && !c.synced
	case 'G':
		c.pop()
		if len(c.expects) > 0 && c.expects[0].kind != 'S' {
			break // the server refuses the rest
		}
		s.copying = simpleCopy
		if c.extended {
			s.copying = extendedCopy
		}
		c.answer.shown.Add("ready for data")
		return true
	case 't':
		if p := c.head().statement; p != nil {
			p.types = described(p.types, f)
		}
	case 'T':
		c.describes(f)
	case 'D':
		c.row(f)
	case 'H':
		c.result.out = true
	case 'C', 'I', 's':
		c.complete(f)
		c.pop()
	case '1', '2', '3', 'n':
		c.pop()
	}
	return c.extended && !c.synced && len(c.expects) == 0
}

// head returns the program's message that the server answers next.
func (c *call) head() (e expected) {
	if len(c.expects) > 0 {
		e = c.expects[0]
	}
	return e
}

func (c *call) pop() {
	if len(c.expects) > 0 && c.expects[0].kind != 'S' {
		c.expects = c.expects[1:]
	}
	c.result = result{says: c.result.says}
}

// undo forgets each statement for which the server did not answer the Parse.
func (s *state) undo(c *call) {
	for _, e := range c.expects {
		if e.kind != 'P' || e.statement == nil || s.statements[e.name] != e.statement {
			continue
		}
		if e.before == nil {
			delete(s.statements, e.name)
		} else {
			s.statements[e.name] = e.before
		}
	}
}

// described fills in the types of parameters that the program left to the server.
func described(types []uint32, f frame) []uint32 {
	var m pgproto3.ParameterDescription
	if m.Decode(f.body()) != nil {
		return types
	}
	return m.ParameterOIDs
}
