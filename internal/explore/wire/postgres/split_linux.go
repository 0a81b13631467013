package postgres

import (
	"fmt"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/oversell/oversell/internal/explore/wire"
)

// own is the name of the session's prepared statements and portals. A Query, or a statement without a
// name, would drop the program's statement without a name.
const own = "oversell"

// Opens implements wire.Splitter.
func (s *Session) Opens(current *wire.Command) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opens, s.split = current, current
	return ask("BEGIN")
}

// Commits implements wire.Splitter.
func (s *Session) Commits(current *wire.Command) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commits = current
	return ask("COMMIT")
}

// ask returns a batch that executes a statement of the session itself. It first closes what a batch
// without success has left behind; to close what does not exist is no error.
func ask(sql string) (raw []byte) {
	statement, portal := &pgproto3.Close{ObjectType: 'S', Name: own}, &pgproto3.Close{ObjectType: 'P', Name: own}
	for _, m := range []pgproto3.FrontendMessage{
		statement, portal, &pgproto3.Parse{Name: own, Query: sql}, &pgproto3.Bind{PreparedStatement: own, DestinationPortal: own},
		&pgproto3.Execute{Portal: own}, portal, statement, &pgproto3.Sync{},
	} {
		raw, _ = m.Encode(raw) // an error says that a message is longer than 1 GiB
	}
	return raw
}

// step handles a message that answers a BEGIN or COMMIT of the session itself, with mu held.
func (s *Session) step(current *wire.Command, f frame) (m wire.Message, err error) {
	begins := s.opens == current
	switch f.kind() {
	case 'N', 'A', 'S':
		m = wire.Message{Raw: f}
		m.Push, m.Text = pushed(f)
	case 'E':
		if begins || fatal(f) {
			return m, fmt.Errorf("the server does not let %s: %s", map[bool]string{true: "BEGIN", false: "COMMIT"}[begins], errorText(errorOf(f)))
		}
		refuse(current, f)
	case 'Z':
		if m.Ends = !begins; begins {
			s.opens = nil
		} else {
			s.commits = nil
		}
	}
	return m, nil
}

// refuse makes the error of a commit the answer to its command: of a deferred constraint, or of
// SERIALIZABLE. The server sends it instead of the end of a Query, and after that of a batch.
func refuse(current *wire.Command, refusal frame) {
	var out []byte
	all := frames(current.Answer.Raw)
	batch := len(all) > 0 && (all[0].kind() == '1' || all[0].kind() == '2')
	for _, f := range all {
		if f.kind() == 'C' && !batch {
			continue
		}
		if f.kind() == 'Z' {
			out = append(out, refusal...)
		}
		out = append(out, f...)
	}
	current.Answer = wire.Answer{Raw: out, Text: wire.Shorten(errorText(errorOf(refusal))), Failed: true, Changed: true}
}
