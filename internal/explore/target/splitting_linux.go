package target

import (
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/target/backend"
	"github.com/oversell/oversell/internal/explore/target/gates"
)

// A splitting runs an autocommitted statement as two steps, execution and commit, for Spec.Overlap. In between, another
// buyer's statement sees the old rows, and waits for rows that the first has locked.
//
// While a statement is held before its commit, only commands that could notice it may run, see meets. Any other command
// would have the same effect before the statement, and another schedule covers that order. If a statement has changed
// nothing, or if no waiting command could notice it, it is not held.
type splitting struct {
	on         bool // see Spec.Overlap
	table      *gates.Table
	code       backend.Catalogs
	overlapped bool // a command ran while another command was held before its commit
}

// splits reports whether command o, which is about to be released, becomes two steps. If a statement is held before its
// commit, and o could notice it, splits marks both as met.
func (s *splitting) splits(o *gates.Op) bool {
	if !s.on {
		return false
	}
	now := s.table.Now()
	noticed := false
	for _, other := range now.Uncommitted {
		if s.meets(other, o) {
			other.Met, o.Met, s.overlapped = true, true, true
			noticed = true
		}
	}
	for _, other := range now.Held {
		noticed = noticed || s.meets(o, other)
	}
	return noticed && o.Autocommits
}

// unmet returns a command that is held before its commit and that no other command has met; nil if there is none.
func (s *splitting) unmet() *gates.Op {
	all := s.table.Now().Uncommitted
	if at := slices.IndexFunc(all, func(o *gates.Op) bool { return !o.Met }); at >= 0 {
		return all[at]
	}
	return nil
}

// restrict applies while a statement is held before its commit and no other command has met it. Then it returns only
// the commit and the commands that would meet the statement. Otherwise it returns all moves, and `restricted` is false.
func (s *splitting) restrict(all []move) (_ []move, restricted bool) {
	held := s.unmet()
	if held == nil {
		return all, false
	}
	return slices.DeleteFunc(all, func(m move) bool {
		return m.Command != held && (m.Command == nil || m.Command.Executed || !s.meets(held, m.Command))
	}), true
}

// commitOf turns the move of a command that is held before its commit into that commit.
func commitOf(m *move) {
	m.Name, m.Effect = "COMMIT of "+m.Command.Name, schedule.Writes
}

// meets reports whether one of two commands could notice that the other is inside the server. A read cannot, since it
// sees the old rows. Two statements that write must use the same table. If both read only the rows that they write,
// they must share a row that neither of them inserts.
func (s *splitting) meets(held, other *gates.Op) bool {
	if other.Conn() == held.Conn() || other.Conn().Protocol != held.Conn().Protocol || other.Effect != schedule.Writes || other.Push {
		return false
	}
	d, _ := effect.DialectOf(held.Conn().Protocol)
	ours, theirs := held.InFull(), other.InFull()
	if other.Compound || !other.Alters || strings.HasSuffix(ours, "...") || strings.HasSuffix(theirs, "...") || !effect.SQL(theirs, d).Writes() {
		return true
	}
	names := effect.Relations(theirs, d)
	common := slices.ContainsFunc(effect.Relations(ours, d), func(name string) bool { return slices.Contains(names, name) })
	if held.Divided || other.Divided || held.Hidden || other.Hidden || !common {
		return common || s.code.Share(held, other) // perhaps they share a table through a view, a foreign key, or a function
	}
	return !effect.InsertsOnly(ours, d) && !effect.InsertsOnly(theirs, d) && !effect.Disjoint(ours, theirs, d)
}
