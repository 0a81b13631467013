package postgres

import (
	"fmt"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/oversell/oversell/internal/explore/wire"
)

// own is the name of the prepared statements and portals that the session itself uses. A Query or an
// unnamed statement would remove the program's unnamed statement.
const own = "oversell"

// Opens implements wire.Splitter.
func (*Session) Opens(*wire.Command) []byte { return ask("BEGIN") }

// Commits implements wire.Splitter.
func (*Session) Commits(*wire.Command) []byte { return ask("COMMIT") }

// ask returns a batch that executes a statement of the session itself. It first closes the statement
// and the portal that a failed batch may have left. Closing a missing one is no error.
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

// step handles a message that answers a BEGIN or COMMIT of the session itself.
func step(current *wire.Command, f frame) (m wire.Message, err error) {
	begins := current.Step() == wire.Begins
	switch f.kind() {
	case 'N', 'A', 'S':
		m = wire.Message{Raw: f}
		m.Push, m.Text = pushed(f)
	case 'E':
		if begins {
			return m, fmt.Errorf("the server refuses BEGIN: %s", errorText(errorOf(f)))
		}
		if fatal(f) {
			return m, fmt.Errorf("the server ends at COMMIT: %s", errorText(errorOf(f)))
		}
		refuse(current, f)
	case 'Z':
		if m.Ends = !begins; begins {
			current.Begun()
		}
	}
	return m, nil
}

// refuse makes the error of a COMMIT the answer to its command. Such errors come from deferred
// constraints and from SERIALIZABLE. A server that executes the command in one step sends the error
// instead of the CommandComplete of a Query, or after the CommandComplete of a batch.
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
	current.Answer = wire.Answer{Raw: out, Text: wire.Shorten(errorText(errorOf(refusal))), Failed: true, Refused: true, Changed: true}
}
