package conduct

import (
	"maps"
	"slices"

	"github.com/oversell/oversell/internal/explore/witness"
)

// A Recorder records the steps of a run, so that they can be shown to the user. If Observe is false, it records
// nothing.
type Recorder[C comparable] struct {
	Observe bool
	Steps   []witness.Step
	waiting map[C]int // commands without an answer, with the index of their step in Steps
}

func NewRecorder[C comparable](observe bool) *Recorder[C] {
	return &Recorder[C]{Observe: observe, waiting: map[C]int{}}
}

// Happened records a step without a command: an event, a request, or passing time.
func (w *Recorder[C]) Happened(s witness.Step, what string) {
	if w.Observe {
		s.Command = "(" + what + ")"
		w.Steps = append(w.Steps, s)
	}
}

// Sent records a released command. Until Answered replaces it, the step's result says that the command waits.
func (w *Recorder[C]) Sent(c C, s witness.Step) {
	if w.Observe {
		w.Steps = append(w.Steps, s)
		w.waiting[c] = len(w.Steps) - 1
	}
}

// Answered records the result of a command. If no other steps have followed, the result goes into the command's own
// step, otherwise into a new one.
func (w *Recorder[C]) Answered(c C, now witness.Step, timedOut bool) {
	at, sent := w.waiting[c]
	delete(w.waiting, c)
	switch {
	case !sent:
	case at == len(w.Steps)-1:
		w.Steps[at].Result, w.Steps[at].Rows, w.Steps[at].Unseen = now.Result, now.Rows, now.Unseen
	default:
		mark := witness.LetThrough
		if timedOut {
			mark = witness.TimedOut
		}
		now.Command = mark + w.Steps[at].Command
		w.Steps = append(w.Steps, now)
	}
}

// Waiting returns the commands without an answer, in the order in which they were sent.
func (w *Recorder[C]) Waiting() []C {
	return slices.SortedFunc(maps.Keys(w.waiting), func(a, b C) int { return w.waiting[a] - w.waiting[b] })
}
