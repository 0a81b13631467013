package target

import (
	"regexp"

	"github.com/oversell/oversell/internal/explore/wire"
)

// snapshots tracks the transactions that have just taken their snapshot. Such a transaction does not see later commits
// of other buyers. So the search tries early to let another buyer move before the transaction's next statement. The map
// contains only transactions whose BEGIN names an isolation level above READ COMMITTED.
type snapshots map[*wire.Conn]stage

// A stage is the progress of a tracked transaction.
type stage byte

const (
	outside stage = iota // not tracked, or past the second statement
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
