package target

import (
	"context"
	"slices"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/witness"
)

// A recorder writes down the steps of a run that is shown to people.
type recorder struct {
	r       *run
	observe bool
	steps   []witness.Step
	columns []string // of the user's watch query
	shown   int      // steps that have their watched values
}

// sent notes a command that is let go.
func (w *recorder) sent(o *op) {
	if !w.observe {
		return
	}
	w.steps = append(w.steps, witness.Step{
		Buyer: o.buyer, Command: o.shown, Name: plain(o.Text), Server: o.Conn().Protocol, Result: "waits for another",
	})
	o.noted = len(w.steps)
}

// answered notes what a command came to: in its own step, or where others have come
// between, in a further one.
func (w *recorder) answered(o *op) {
	if !w.observe || o.noted == 0 {
		return
	}
	result := w.r.names.shown(o.Answer.Text)
	if o.noted == len(w.steps) {
		w.steps[o.noted-1].Result = result
		return
	}
	how := "(let through) "
	if o.timedOut {
		how = "(timed out) "
	}
	w.steps = append(w.steps, witness.Step{Buyer: o.buyer, Command: how + o.shown, Server: o.Conn().Protocol, Result: result})
}

// pushed notes a message.
func (w *recorder) pushed(o *op) {
	if w.observe {
		w.steps = append(w.steps, witness.Step{Buyer: o.buyer, Command: "(message) " + w.r.names.shown(o.Answer.Text), Server: o.Conn().Protocol})
	}
}

// happened notes an event, or a request that is sent.
func (w *recorder) happened(a action) {
	if w.observe {
		w.steps = append(w.steps, witness.Step{Buyer: a.Buyer, Command: "(" + a.note + ")", Name: a.Name, Token: a.Token})
	}
}

// watch adds what the user's query sees now to the steps that have none yet.
func (w *recorder) watch(ctx context.Context) error {
	if !w.observe {
		return nil
	}
	_, values, err := w.r.x.servers.Watch(ctx)
	w.columns = w.r.x.watched
	switch {
	case app.Locked(err):
		values = slices.Repeat([]string{"locked"}, len(w.columns))
	case err != nil:
		return err
	}
	for ; w.shown < len(w.steps); w.shown++ {
		w.steps[w.shown].Watched = values
	}
	return nil
}
