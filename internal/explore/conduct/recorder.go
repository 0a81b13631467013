package conduct

import (
	"maps"
	"slices"

	"github.com/oversell/oversell/internal/explore/witness"
)

// A Recorder writes down the steps of a run that is shown to people. The others record nothing.
type Recorder[C comparable] struct {
	Observe bool
	Steps   []witness.Step
	waiting map[C]int // commands that are not answered yet, by their step
}

// NewRecorder returns a recorder without steps; it stays so unless observe is set.
func NewRecorder[C comparable](observe bool) *Recorder[C] {
	return &Recorder[C]{Observe: observe, waiting: map[C]int{}}
}

// Happened notes what is no command: an event, a request, time that passes.
func (w *Recorder[C]) Happened(s witness.Step, what string) {
	if w.Observe {
		s.Command = "(" + what + ")"
		w.Steps = append(w.Steps, s)
	}
}

// Sent notes a command that is let go. Its result, until Answered, says that it waits.
func (w *Recorder[C]) Sent(c C, s witness.Step) {
	if w.Observe {
		w.Steps = append(w.Steps, s)
		w.waiting[c] = len(w.Steps) - 1
	}
}

// Answered notes the result of a command in its own step or, if others have come since, in a
// further one: now.
func (w *Recorder[C]) Answered(c C, now witness.Step, timedOut bool) {
	at, sent := w.waiting[c]
	delete(w.waiting, c)
	switch {
	case !sent:
	case at == len(w.Steps)-1:
		w.Steps[at].Result = now.Result
	default:
		how := "(let through) "
		if timedOut {
			how = "(timed out) "
		}
		now.Command = how + w.Steps[at].Command
		w.Steps = append(w.Steps, now)
	}
}

// Waiting returns the commands that are not answered yet, in the order in which they were sent.
func (w *Recorder[C]) Waiting() []C {
	return slices.SortedFunc(maps.Keys(w.waiting), func(a, b C) int { return w.waiting[a] - w.waiting[b] })
}
