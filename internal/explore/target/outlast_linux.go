package target

import (
	"context"
	"slices"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/target/retry"
)

// A waiting is a step of a schedule at which the search held a buyer back. The buyer's next command would only have
// repeated a futile retry: the same commands with the same answers.
type waiting struct {
	buyer  int
	depth  int      // number of earlier steps
	tokens []string // tokens (names) of the earlier steps
}

// An outlasting is a run of Outlast in progress.
type outlasting struct{ polling *retry.Polling }

// patience returns the number of futile retries in a row after which the search holds a buyer back.
func (x *Runner) patience() int {
	if x.outlasting != nil {
		return MaxTries
	}
	return x.tries
}

func (x *Runner) stepLimit() int {
	if x.outlasting != nil {
		return retry.MaxSteps
	}
	return x.steps
}

// Outlast implements schedule.Patient, to find out whether a buyer gives up. It lets the buyer that was held back retry
// up to MaxTries times, while the other buyers wait.
func (x *Runner) Outlast(ctx context.Context) (gaveUp string, _ error) {
	w := x.learned.waiting
	if w == nil {
		return "", nil
	}
	x.outlasting = &outlasting{}
	defer func() { x.outlasting = nil }()
	_, err := x.Run(ctx, func(p *schedule.Point) (string, error) {
		if p.Depth < len(w.tokens) {
			return w.tokens[p.Depth], nil
		}
		if at := slices.IndexFunc(p.Choices, func(c schedule.Choice) bool { return c.Command() && c.Buyer == w.buyer }); at >= 0 {
			return p.Choices[at].Token, nil
		}
		return "", nil // the buyer waits, or was answered
	}, false)
	if err != nil {
		return "", err
	}
	return x.outlasting.polling.GaveUp, nil
}
