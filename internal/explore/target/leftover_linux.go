package target

import (
	"context"
	"fmt"
	"strings"

	"github.com/oversell/oversell/internal/explore/wire"
)

// A hold is a lock, or an open transaction, that a connection of the programs has.
type hold struct {
	conn *wire.Conn
	what string // for people
}

// holdings alone knows what the connections of the programs hold in the databases, and what of that
// was there before any buyer came. It is for one goroutine.
type holdings struct {
	floor    *floor
	backends map[string]backend
	before   map[hold]bool
}

// now asks the databases what the programs' connections have, in their order.
func (x *holdings) now(ctx context.Context) (all []hold, err error) {
	f := x.floor
	f.mu.Lock()
	conns := f.conns.inOrder()
	f.mu.Unlock()
	held := map[string]map[int64][]string{}
	for _, c := range conns {
		if held[c.Protocol] == nil {
			if held[c.Protocol], err = x.backends[c.Protocol].held(ctx); err != nil {
				return nil, err
			}
		}
		for _, what := range held[c.Protocol][c.ID] {
			all = append(all, hold{c, what})
		}
	}
	return all, nil
}

// remember notes what the programs hold while no buyer is there.
func (x *holdings) remember(ctx context.Context) error {
	all, err := x.now(ctx)
	x.before = map[hold]bool{}
	for _, h := range all {
		x.before[h] = true
	}
	return err
}

// dirty are the connections that hold something which they did not hold before any buyer came,
// and on which a command came since the gates were last closed or forgot them. A lock on
// another connection is the program's own, as the one of an elected leader.
func (x *holdings) dirty(ctx context.Context) (conns []*wire.Conn, err error) {
	all, err := x.now(ctx)
	if err != nil {
		return nil, err
	}
	f := x.floor
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range all {
		if !x.before[h] && f.conns.touched[h.conn] {
			conns = append(conns, h.conn)
		}
	}
	return conns, nil
}

// A use is the last command that was answered on a connection.
type use struct {
	buyer int
	text  string
	step  int // of the witness
}

// A leftover knows what the connections of a run hold, and which commands took it. Its owner is
// told of each answer.
type leftover struct {
	*run
	used map[*wire.Conn]use
	took map[hold]use // in a run that is observed, and as long as it is held
}

// answered notes a command of the run that has its answer.
func (l *leftover) answered(o *op) {
	l.used[o.Conn()] = use{o.buyer, o.shown, len(l.record.Steps) - 1}
}

// look finds out, in a run that is observed, which command took what is held now.
func (l *leftover) look(ctx context.Context) error {
	all, err := l.x.holdings.now(ctx)
	if err != nil {
		return err
	}
	now := map[hold]use{}
	for _, h := range all {
		u, known := l.took[h]
		if !known {
			u, known = l.used[h.conn]
		}
		if known {
			now[h] = u
		}
	}
	l.took = now
	return nil
}

// why says which locks the run has left behind, with the commands that took them, and marks
// the steps of those; "": none. A connection whose buyer has no answer yet leaves nothing.
func (l *leftover) why(ctx context.Context) (string, error) {
	all, err := l.x.holdings.now(ctx)
	if err != nil {
		return "", err
	}
	var owners []int
	theirs := map[int][]string{}
	for _, h := range all {
		u, used := l.used[h.conn]
		if !used || l.x.holdings.before[h] || !l.answeredBy(l.buyer(u.buyer)) {
			continue
		}
		what := h.what
		if took, known := l.took[h]; known {
			u.buyer, what = took.buyer, what+" ("+took.text+")"
			l.record.mark(took.step, "its connection keeps "+h.what)
		}
		if theirs[u.buyer] == nil {
			owners = append(owners, u.buyer)
		}
		theirs[u.buyer] = append(theirs[u.buyer], what)
	}
	var whys []string
	for _, id := range owners {
		whys = append(whys, fmt.Sprintf("the idle connection of buyer %d still has %s", id, strings.Join(theirs[id], ", ")))
	}
	return strings.Join(whys, "; "), nil
}
