package mysql

import (
	"fmt"
	"regexp"

	"github.com/oversell/oversell/internal/explore/wire"
)

// Opens implements wire.Splitter. A split command executes and commits in two steps, in a transaction of the
// session. Opens returns the BEGIN before the first step, and Commits the COMMIT, which is the second step.
func (s *session) Opens(current *wire.Command) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.split = current
	return query("BEGIN")
}

// Commits implements wire.Splitter.
func (*session) Commits(current *wire.Command) []byte {
	outside(current.Answer.Raw)
	return query("COMMIT")
}

// step reads the server's answer to a BEGIN or COMMIT of the session itself. The result `own` is false
// if the next answer is for the program.
func (s *session) step(current *wire.Command) (m wire.Message, own bool, err error) {
	begins := current.Step() == wire.Begins
	if !begins && current.Step() != wire.Commits {
		return m, false, nil
	}
	raw, payload, err := readPacket(s.server.R)
	if err != nil {
		return m, true, err
	}
	a := answer{kind: single}
	if _, err := a.feed(payload, len(payload)); err != nil {
		return m, true, err
	}
	switch {
	case begins && a.failed():
		err = fmt.Errorf("the server refuses BEGIN: %s", a.text(""))
	case begins:
		current.Begun()
	case a.failed():
		current.Answer = wire.Answer{Raw: raw, Text: a.text(""), Failed: true, Changed: true}
	}
	m.Ends = !begins
	return m, true, err
}

// outside clears the flag for an open transaction in a complete answer, in place.
func outside(raw []byte) {
	a := answer{kind: results}
	for _, p := range split(raw) {
		at := 3 // offset of the status in an EOF packet
		switch {
		case a.phase == begins && len(p.payload) > 0 && p.payload[0] == 0:
			r := reader{b: p.payload[1:]}
			r.length()
			r.length()
			at = len(p.payload) - len(r.b)
		case !isEOF(p.payload, len(p.payload)):
			at = len(p.payload)
		}
		if at+1 < len(p.payload) {
			p.payload[at] &^= statusInTransaction
		}
		if _, err := a.feed(p.payload, len(p.payload)); err != nil {
			return
		}
	}
}

// rowCount matches a statement that asks for the row count or the diagnostics of the previous
// statement.
var rowCount = regexp.MustCompile(`(?i)\bROW_COUNT\s*\(|\bGET\s+DIAGNOSTICS\b`)

// afterSplit refuses a command that asks for the row count of a split command, with mu held. The server
// would answer with the row count of the COMMIT.
func (s *session) afterSplit(c *wire.Command) error {
	if s.split != nil && rowCount.MatchString(c.Text) {
		return &wire.Refused{Why: fmt.Sprintf("--overlap cannot explore a program that asks %s after a statement that was held; use the number of changed rows that the driver returns, or explore without --overlap", c.Text)}
	}
	if c.Gated {
		s.split = nil
	}
	return nil
}

// locksTables records whether the connection may have locked tables, with mu held.
func (s *state) locksTables(what said) {
	switch what.Verb {
	case "LOCK", "FLUSH", "BACKUP", "EXECUTE", "":
		s.tables = true
	case "UNLOCK":
		s.tables = false
	}
}
