package target

import (
	"regexp"

	"github.com/oversell/oversell/internal/explore/wire"
)

// snapshots tracks the transactions that have just taken their snapshot, and so do not see later commits of other
// buyers. The search first tries schedules in which another buyer moves before the next statement of such a
// transaction. The map has only transactions whose BEGIN names an isolation level above READ COMMITTED.
type snapshots map[*wire.Conn]stage

// A stage is the progress of a tracked transaction.
type stage byte

const (
	outside stage = iota // not tracked: no such transaction, or it is past its second statement
	begun                // before its first statement
	taken                // after its first statement
)

var beginsSnapshot = regexp.MustCompile(`(?is)^\s*(?:BEGIN|START)\b.*\b(?:REPEATABLE\s+READ|SERIALIZABLE)\b`)

func (s snapshots) answered(conn *wire.Conn, text string) {
	switch {
	case beginsSnapshot.MatchString(text):
		s[conn] = begun
	case s[conn] == begun:
		s[conn] = taken
	default:
		delete(s, conn)
	}
}
