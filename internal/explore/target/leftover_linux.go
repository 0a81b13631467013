package target

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/wire"
)

// A hold is a lock or an open transaction on a connection of the programs.
type hold struct {
	conn *wire.Conn
	what string // its description
}

// holdings lists the locks and transactions on the programs' connections, and knows which of them
// were there before any buyer came. It is for one goroutine.
type holdings struct {
	gateTable *gateTable
	backends  map[string]backend
	before    map[hold]bool
}

// now asks the databases for the holds of all connections, and returns them in connections.inOrder.
func (x *holdings) now(ctx context.Context) (all []hold, err error) {
	f := x.gateTable
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

// remember records the current holds as the programs' own. The caller ensures that no buyer is there.
func (x *holdings) remember(ctx context.Context) error {
	all, err := x.now(ctx)
	x.before = map[hold]bool{}
	for _, h := range all {
		x.before[h] = true
	}
	return err
}

// left returns the holds that are not the program's own, on connections that have carried a gated
// command since gateTable.forget. A hold on any other connection counts as the program's own, for instance
// the lock of an elected leader.
func (x *holdings) left(ctx context.Context) ([]hold, error) {
	all, err := x.now(ctx)
	f := x.gateTable
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(all, func(h hold) bool { return x.before[h] || !f.conns.touched[h.conn] }), err
}

// dirty returns the connections with such holds.
func (x *holdings) dirty(ctx context.Context) ([]*wire.Conn, error) {
	all, err := x.left(ctx)
	return connsOf(all), err
}

func connsOf(all []hold) (conns []*wire.Conn) {
	for _, h := range all {
		conns = append(conns, h.conn)
	}
	return conns
}

// dirty is holdings.dirty. It does not ask the servers again if nothing has happened since why.
func (l *leftover) dirty(ctx context.Context) ([]*wire.Conn, error) {
	if l.at == l.x.gateTable.seq.Load() {
		return connsOf(l.last), nil
	}
	return l.x.holdings.dirty(ctx)
}

// A use is the last answered command of a connection.
type use struct {
	buyer int
	text  string
	step  int // its index in the witness
}

// A leftover finds the locks that a run leaves behind, and the commands that took them. The run calls
// answered for each answer.
type leftover struct {
	*run
	used map[*wire.Conn]use
	took map[hold]use // the command that took each current hold; only in an observed run
	last []hold       // the result of the last holdings.left
	at   int64        // gateTable.seq before that
}

// answered records an answered command of the run.
func (l *leftover) answered(o *op) {
	l.used[o.Conn()] = use{o.buyer, o.shown, len(l.record.Steps) - 1}
}

// look records which command took each current hold. It is called after each step of an observed run.
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

// why describes the locks that the run left behind, see holdings.left, with the commands that took them;
// "" if there are none. It also marks the steps of those commands. A connection counts only once its
// buyer is answered.
func (l *leftover) why(ctx context.Context) (string, error) {
	at := l.x.gateTable.seq.Load()
	all, err := l.x.holdings.left(ctx)
	if err != nil {
		return "", err
	}
	l.last, l.at = all, at
	var owners []int
	theirs := map[int][]string{}
	for _, h := range all {
		u, used := l.used[h.conn]
		if !used || !l.answeredBy(l.buyer(u.buyer)) {
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
