package own

import (
	"context"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/conduct"
	"github.com/oversell/oversell/internal/explore/gate"
	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// A recorder is a conduct.Recorder, which records the steps of a run. It also keeps the names of random values, the
// last read of each buyer, and the holders of locks in memory.
type recorder struct {
	*conduct.Recorder[*gate.Op]
	secrets  secrets
	read     map[int]string // result of each buyer's last read
	inMemory map[int]bool   // buyers that hold a lock in memory
}

func newRecorder(observe bool) *recorder {
	return &recorder{conduct.NewRecorder[*gate.Op](observe), secrets{}, map[int]string{}, map[int]bool{}}
}

// after completes a step: it reads stock and records, and adds the step to the witness. If the step unblocked another
// command, after adds that command's result, too.
func (w *recorder) after(ctx context.Context, r *run, m move) error {
	if !w.Observe {
		return nil
	}
	state, err := r.x.stock.Read(ctx)
	if err != nil {
		return err
	}
	waiting := w.Waiting()
	now := witness.Step{Buyer: m.Buyer, Stock: state.Leftover, Records: state.Records, Server: m.Touches}
	switch {
	case m.Pair:
		w.sent(r, m.Command, now, "at once with the next")
		w.sent(r, m.Second, now, "sent before the other was answered")
	case m.Event == "":
		w.sent(r, m.Command, now, "")
	default:
		w.Happened(now, m.Text)
		if m.Command != nil && !slices.Contains(waiting, m.Command) {
			w.sent(r, m.Command, now, "")
		}
	}
	for _, o := range waiting {
		w.answered(r, o, now)
	}
	w.locks(r, now)
	return nil
}

// waits is the result that the witness shows for a command without an answer.
const waits = "waits for another buyer's transaction"

func (w *recorder) sent(r *run, o *gate.Op, now witness.Step, note string) {
	now.Buyer, now.Server = o.Buyer, o.Server
	now.Command, now.Result = w.secrets.readable(o.Buyer, o.Text), waits
	now.Note = strings.Trim(note+"; "+o.Note, "; ")
	w.Sent(o, now)
	w.answered(r, o, now)
}

func (w *recorder) answered(r *run, o *gate.Op, now witness.Step) {
	if r.buyers.flies(o) {
		return
	}
	now.Buyer, now.Server, now.Result = o.Buyer, o.Server, waits
	if !o.Blocked {
		now.Result = w.secrets.readable(o.Buyer, o.Result)
		w.known(o, now.Result)
	}
	w.Answered(o, now, o.TimedOut())
}

// locks notes which locks in memory were taken or released, because no command shows them.
func (w *recorder) locks(r *run, now witness.Step) {
	if !w.Observe {
		return
	}
	now.Server = ""
	for _, l := range r.inbox.lockEvents() {
		now.Buyer = l.buyer
		w.Happened(now, lockWords[l.kind])
		w.inMemory[l.buyer] = l.kind == lockstrategy.Acquired
	}
}

var lockWords = map[lockstrategy.EventKind]string{lockstrategy.Acquired: "takes the lock, in memory", lockstrategy.Released: "frees the lock"}

// time records a step in which time passed, without a command of a buyer.
func (w *recorder) time(what string) {
	var s witness.Step
	if n := len(w.Steps); n > 0 {
		s.Stock, s.Records = w.Steps[n-1].Stock, w.Steps[n-1].Records
	}
	w.Happened(s, what)
}
