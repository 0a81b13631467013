package target

import (
	"context"
	"fmt"
	"strings"

	"github.com/oversell/oversell/internal/explore/target/backend"
	"github.com/oversell/oversell/internal/explore/target/client"
	"github.com/oversell/oversell/internal/explore/target/gates"
	"github.com/oversell/oversell/internal/explore/wire"
)

// dirty returns the connections on which the run has left locks. If nothing has happened since the method why ran,
// dirty uses that result.
func (l *leftover) dirty(ctx context.Context) ([]*wire.Conn, error) {
	if l.at == l.pulse.Seq() {
		return backend.Conns(l.last), nil
	}
	return l.holdings.Dirty(ctx)
}

// A use is the last answered command of a connection.
type use struct {
	buyer int
	text  string
	step  int // index in the witness
}

// A leftover finds the locks and transactions that a run leaves behind, and the commands that took them. The run
// reports each answered command to it.
type leftover struct {
	holdings *backend.Holdings
	pulse    *gates.Pulse
	buyers   *client.Buyers
	record   *recorder

	used map[*wire.Conn]use
	took map[backend.Hold]use // by lock or transaction that exists now: the command that took it; only for a witness
	last []backend.Hold       // the result of the last backend.Holdings.Left
	at   int64                // Pulse.Seq just before last was set
}

func (l *leftover) answered(o *gates.Op) {
	l.used[o.Conn()] = use{o.Buyer, o.Shown, len(l.record.Steps) - 1}
}

// look records which command took each current lock or transaction. It is called after each step of a run for a
// witness.
func (l *leftover) look(ctx context.Context) error {
	all, err := l.holdings.Now(ctx)
	if err != nil {
		return err
	}
	now := map[backend.Hold]use{}
	for _, h := range all {
		u, known := l.took[h]
		if !known {
			u, known = l.used[h.Conn]
		}
		if known {
			now[h] = u
		}
	}
	l.took = now
	return nil
}

// why describes the locks that the run left behind, and the commands that took them; "" if there are none. It also adds
// notes to those commands' steps. It counts the locks on a connection only after the connection's buyer was answered.
func (l *leftover) why(ctx context.Context) (string, error) {
	at := l.pulse.Seq()
	all, err := l.holdings.Left(ctx)
	if err != nil {
		return "", err
	}
	l.last, l.at = all, at
	var owners []int
	theirs := map[int][]string{}
	for _, h := range all {
		u, used := l.used[h.Conn]
		if !used || !l.buyers.Told(l.buyers.Of(u.buyer)) {
			continue
		}
		what := h.What
		if took, known := l.took[h]; known {
			u.buyer, what = took.buyer, what+" ("+took.text+")"
			l.record.mark(took.step, "its connection keeps "+h.What)
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
