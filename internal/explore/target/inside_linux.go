package target

import (
	"context"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
)

// An inside holds statements inside their database, for Spec.Overlap. A statement that commits by itself
// becomes two steps: the server executes it, and it commits. In between, another buyer's statement sees
// the rows as they were, and waits for a row that the first one has locked. So it runs while the first
// one is inside the server.
//
// A held statement says nothing new until a command comes that could notice it, see meets. Any other
// command could as well have come before the statement, which is a schedule of its own. So until then
// only such a command can be next, or the commit. A statement is not held if no such command is at a
// gate, and if it has changed nothing.
type inside struct{ *run }

// An insider is what a run knows about a command that is two steps.
type insider struct {
	executed   bool   // the server has executed it, and it is not committed; guarded by floor.mu
	committing bool   // it was held, and commits
	met        bool   // a command ran in between, or this one ran while another one was held
	result     string // the answer for people, once it is known
	known      bool   // result is set
}

// now returns the commands that are held inside their servers.
func (h inside) now() []*op {
	f := h.x.floor
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.inside)
}

// splits reports whether a command that is about to be released becomes two steps, and records which
// held commands it meets.
func (h inside) splits(o *op) bool {
	f := h.x.floor
	f.mu.Lock()
	defer f.mu.Unlock()
	if !h.x.overlap {
		return false
	}
	noticed := false
	for _, other := range f.inside {
		if meets(other, o) {
			other.met, o.met, h.overlap = true, true, true
			noticed = true
		}
	}
	for _, other := range f.held {
		noticed = noticed || meets(o, other)
	}
	return noticed && o.Autocommits
}

// unmet returns a held command that no other command has met; nil if there is none.
func (h inside) unmet() *op {
	if all := h.now(); len(all) > 0 {
		if at := slices.IndexFunc(all, func(o *op) bool { return !o.met }); at >= 0 {
			return all[at]
		}
	}
	return nil
}

// only removes the moves that can as well come before a held command: see inside.
func (h inside) only(all []move) ([]move, bool) {
	held := h.unmet()
	if held == nil {
		return all, false
	}
	return slices.DeleteFunc(all, func(m move) bool {
		return m.Command != held && (m.Command == nil || m.Command.executed || !meets(held, m.Command))
	}), true
}

// commits turns the move of a held command into its commit.
func (h inside) commits(m *move) {
	m.Name, m.Effect = "COMMIT of "+m.Command.name, schedule.Writes
}

// executed processes the answers of the commands that were executed in this step.
func (h inside) executed(ctx context.Context) error {
	for _, o := range h.now() {
		if o.known {
			continue
		}
		if err := h.x.backends[o.Conn().Protocol].answered(ctx, o); err != nil {
			return err
		}
		h.learn(o)
		h.record.executed(o)
		h.leftover.answered(o)
	}
	return nil
}

// learn names the values of an answer, once.
func (r *run) learn(o *op) string {
	if !o.known {
		for _, value := range o.Answer.Made {
			r.names.made(o.Text, value)
			r.x.short = r.x.short || len(value) < longID
		}
		o.result, o.known = r.answer(o), true
	}
	return o.result
}

// meets reports whether another command could notice that held is inside the server, or the other way
// round. A read cannot, since it sees the rows as they were before. A statement that writes rows can do so
// only on a common table; if both read only the rows that they write, only on common rows that were there
// before.
func meets(held, other *op) bool {
	if other.Conn() == held.Conn() || other.Conn().Protocol != held.Conn().Protocol || other.Effect != schedule.Writes || other.Push {
		return false
	}
	d, _ := effect.DialectOf(held.Conn().Protocol)
	ours, theirs := held.whole(), other.whole()
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

// whole returns the text of a command, with its values.
func (o *op) whole() string {
	if o.Whole != nil {
		return o.Whole()
	}
	return o.Text
}

// letGoInside sends a command to its server, which executes it and does not commit it before commit is
// called, unless it has changed nothing or the gates open before.
func (f *floor) letGoInside(o *op) {
	o.Split(func() (hold bool) { return f.executed(o) })
	f.letGo(o)
}

// executed is called when the server has executed a command of letGoInside.
func (f *floor) executed(o *op) (hold bool) {
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
	f.inside = append(f.inside, o)
	inOrder(f.inside)
	return true
}

// commit lets a held command commit.
func (f *floor) commit(o *op) {
	f.mu.Lock()
	f.inside = slices.DeleteFunc(f.inside, func(other *op) bool { return other == o })
	f.flying = append(f.flying, o)
	o.executed, o.committing = false, true
	f.happened()
	f.mu.Unlock()
	o.Commit()
}
