package target

import (
	"context"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
)

// A splitting makes two steps of a statement that its database would commit by itself, for Spec.Overlap:
// the server executes the statement, and later commits it. In between, another buyer's statement sees the
// rows as they were, and waits for a row that the first one has locked. So it runs while the first one is
// inside the server.
//
// While a statement is held before its commit, the next command must be one that could notice it, see
// meets. Any other command has the same effect before the statement, and that is a schedule of its own. A
// statement is not held if no such command is at a gate, or if it has changed nothing.
type splitting struct{ *run }

// halves is the state of a command that is two steps.
type halves struct {
	executed   bool // the server has executed it, and it is not committed; guarded by gateTable.mu
	committing bool // it was held, and commits
	met        bool // a command ran in between, or this one ran while another one was held
}

// uncommitted returns the commands that are held inside their servers.
func (s splitting) uncommitted() []*op {
	f := s.x.gateTable
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.uncommitted)
}

// splits reports whether a command that is about to be released becomes two steps, and records which
// held commands it meets.
func (s splitting) splits(o *op) bool {
	if !s.x.overlap {
		return false
	}
	f := s.x.gateTable
	f.mu.Lock()
	defer f.mu.Unlock()
	noticed := false
	for _, other := range f.uncommitted {
		if meets(other, o) {
			other.met, o.met, s.overlap = true, true, true
			noticed = true
		}
	}
	for _, other := range f.held {
		noticed = noticed || meets(o, other)
	}
	return noticed && o.Autocommits
}

// unmet returns a held command that no other command has met; nil if there is none.
func (s splitting) unmet() *op {
	all := s.uncommitted()
	if at := slices.IndexFunc(all, func(o *op) bool { return !o.met }); at >= 0 {
		return all[at]
	}
	return nil
}

// restrict leaves only the commit of a command that is held and not met, and the commands that meet it.
// restricted is false if there is no such command.
func (s splitting) restrict(all []move) (_ []move, restricted bool) {
	held := s.unmet()
	if held == nil {
		return all, false
	}
	return slices.DeleteFunc(all, func(m move) bool {
		return m.Command != held && (m.Command == nil || m.Command.executed || !meets(held, m.Command))
	}), true
}

// commitOf turns the move of a held command into its commit.
func commitOf(m *move) {
	m.Name, m.Effect = "COMMIT of "+m.Command.name, schedule.Writes
}

// executed processes the answers of the commands that were executed in this step.
func (s splitting) executed(ctx context.Context) error {
	for _, o := range s.uncommitted() {
		if o.known {
			continue
		}
		if err := s.x.backends[o.Conn().Protocol].answered(ctx, o); err != nil {
			return err
		}
		s.learn(o)
		s.record.executed(o)
		s.leftover.answered(o)
	}
	return nil
}

// learn names the values of an answer, once.
func (r *run) learn(o *op) string {
	if !o.known {
		for _, value := range o.Answer.Made {
			r.x.short = r.names.Made(o.Text, value) || r.x.short
		}
		o.result, o.known = r.answer(o), true
	}
	return o.result
}

// meets reports whether another command could notice that held is inside the server, or held the other
// command. A read cannot, since it sees the rows as they were before. A statement that writes rows must have
// a common table with held. If both read only the rows that they write, they must have a common row that
// neither of them inserts.
func meets(held, other *op) bool {
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
	if held.Divided || other.Divided {
		return common
	}
	return common && !effect.InsertsOnly(ours, d) && !effect.InsertsOnly(theirs, d) && !effect.Disjoint(ours, theirs, d)
}

// letGoSplit sends a command to its server, which executes it and does not commit it before commit is
// called, unless it has changed nothing or the gates open before.
func (f *gateTable) letGoSplit(o *op) {
	o.Split(func() (hold bool) { return f.executed(o) })
	f.letGo(o)
}

// executed is called when the server has executed a command of letGoSplit.
func (f *gateTable) executed(o *op) (hold bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.shut || f.byCmd[o.Command] != o || !o.Answer.Changed {
		return false
	}
	still := f.still
	f.happened()
	f.still = still // the program has received nothing
	f.flying = slices.DeleteFunc(f.flying, func(other *op) bool { return other == o })
	o.executed = true
	f.uncommitted = append(f.uncommitted, o)
	inOrder(f.uncommitted)
	return true
}

// commit lets a held command commit.
func (f *gateTable) commit(o *op) {
	f.mu.Lock()
	f.uncommitted = slices.DeleteFunc(f.uncommitted, func(other *op) bool { return other == o })
	f.flying = append(f.flying, o)
	o.executed, o.committing = false, true
	f.happened()
	f.mu.Unlock()
	o.Commit()
}
