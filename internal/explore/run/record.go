package run

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/gate"
	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// A recorder writes down the steps of a run that is shown to people.
type recorder struct {
	x       *Runner
	observe bool
	steps   []witness.Step
	secrets secrets
	flying  map[*gate.Op]int // commands that wait in the database, by their step

	read     map[int]string // by buyer: what its last reading returned
	inMemory map[int]bool   // buyers who hold a lock in memory
}

func newRecorder(x *Runner, observe bool) *recorder {
	w := &recorder{x: x, observe: observe, secrets: secrets{}, flying: map[*gate.Op]int{}}
	if observe {
		w.read, w.inMemory = map[int]string{}, map[int]bool{}
	}
	return w
}

// after reads stock and records and notes what the step has done. A command that
// another's step has let through gets its result then.
func (w *recorder) after(ctx context.Context, r *Run, a Action) error {
	if !w.observe {
		return nil
	}
	state, err := w.x.stock.Read(ctx)
	if err != nil {
		return err
	}
	now := witness.Step{Buyer: a.Buyer, Stock: state.Leftover, Records: state.Records, Server: a.Touches}
	switch {
	case a.Pair:
		w.sent(r, a.op, now, "at once with the next")
		w.sent(r, a.with, now, "sent before the other was answered")
	case a.event == nil:
		w.sent(r, a.op, now, "")
	default:
		if a.server != nil {
			now.Server = a.server.Name
		}
		w.happened(now, a.text)
		if _, noted := w.flying[a.op]; a.op != nil && !noted {
			w.sent(r, a.op, now, "")
		}
	}
	w.letThrough(r, now)
	w.locks(r, now)
	return nil
}

// locks notes what no command shows: a lock in memory that was taken or freed.
func (w *recorder) locks(r *Run, now witness.Step) {
	if !w.observe {
		return
	}
	now.Server = ""
	for _, l := range r.inbox.lockEvents() {
		now.Buyer = l.buyer
		w.happened(now, lockWords[l.kind])
		w.inMemory[l.buyer] = l.kind == lockstrategy.Acquired
	}
}

var lockWords = map[lockstrategy.EventKind]string{lockstrategy.Acquired: "takes the lock, in memory", lockstrategy.Released: "frees the lock"}

func (w *recorder) happened(s witness.Step, what string) {
	s.Command = "(" + what + ")"
	w.steps = append(w.steps, s)
}

// sent notes a command that was let go.
func (w *recorder) sent(r *Run, o *gate.Op, s witness.Step, note string) {
	flies := r.buyers.flies(o)
	s.Buyer, s.Server = o.Buyer, o.Server
	s.Command, s.Result = w.secrets.readable(o.Buyer, o.Text), w.secrets.readable(o.Buyer, o.Result)
	if o.Blocked || flies {
		s.Result = "waits for another buyer's transaction"
	} else {
		w.known(o, s.Result)
	}
	s.Note = strings.Trim(note+"; "+o.Note, "; ")
	w.steps = append(w.steps, s)
	if flies {
		w.flying[o] = len(w.steps) - 1
	}
}

// letThrough notes the commands that the step has ended the wait of.
func (w *recorder) letThrough(r *Run, now witness.Step) {
	for _, o := range slices.SortedFunc(maps.Keys(w.flying), func(a, b *gate.Op) int { return w.flying[a] - w.flying[b] }) {
		if r.buyers.flies(o) {
			continue
		}
		s := now
		s.Buyer, s.Server = o.Buyer, o.Server
		how := "(let through) "
		if o.TimedOut() {
			how = "(timed out) "
		}
		s.Command, s.Result = how+w.steps[w.flying[o]].Command, w.secrets.readable(o.Buyer, o.Result)
		w.known(o, s.Result)
		w.steps = append(w.steps, s)
		delete(w.flying, o)
	}
}

// time notes what happened by itself.
func (w *recorder) time(what string) {
	if !w.observe {
		return
	}
	s := witness.Step{Command: "(" + what + ")"}
	if n := len(w.steps); n > 0 {
		s.Stock, s.Records = w.steps[n-1].Stock, w.steps[n-1].Records
	}
	w.steps = append(w.steps, s)
}
