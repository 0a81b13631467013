package verify

import (
	"context"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/load/quantile"
)

// clientGone makes a third of a burst of buyers hang up, each at a random moment within the usual time of an
// answer.
func (t *Target) clientGone(ctx context.Context, c *Cell) error {
	if err := t.restock(ctx, targetStock); err != nil {
		return err
	}
	first, err := send(ctx, t.crowd(c.Strategy), t.buyers("first", 10))
	if err != nil {
		return err
	}
	usual := usualTime(first)
	crowd := t.buyers("crowd", targetStock)
	for i := range crowd {
		if i%3 == 0 {
			crowd[i].HangUp = 1 + time.Duration(mathrand.Int64N(int64(usual)))
		}
	}
	came, err := send(ctx, t.crowd(c.Strategy), crowd)
	if err != nil {
		return err
	}
	audited, err := t.Audit(ctx, t.Product)
	if err != nil {
		return fmt.Errorf("audit after the hang-ups: %w", err)
	}
	last, err := send(ctx, t.crowd(c.Strategy), t.buyers("last", int(max(2*audited.Leftover, 20))))
	if err != nil {
		return err
	}

	gone := 0
	for _, v := range came {
		if v.HungUp {
			gone++
		}
	}
	facts := fault.Facts{
		Answers: slices.Concat(first, came, last), Last: last,
		Proof: fmt.Sprintf("%d of the first %d buyers hung up when their request was out and not answered", gone, len(crowd)),
	}
	if gone == 0 {
		facts.Missed = "every buyer was answered before it could hang up"
	}
	// An interrupted purchase may end after all others were served. So stock and records have finishTimeout to
	// agree. A unit that was sold twice is a violation even then.
	for deadline := time.Now().Add(finishTimeout); ; time.Sleep(100 * time.Millisecond) {
		if err := t.judge(ctx, c, facts, targetStock); err != nil {
			return err
		}
		unfinished := c.Verdict == verdict.Leaked || c.Verdict == verdict.Drifted || c.Verdict == verdict.Stalled
		if !unfinished || time.Now().After(deadline) {
			return nil
		}
	}
}

// usualTime returns the median time of an answer, at least 1 ns. Buyers without times do not count: they were
// never sent.
func usualTime(answers []buyers.Answer) time.Duration {
	var took []time.Duration
	for _, a := range answers {
		if !a.Start.IsZero() {
			took = append(took, a.End.Sub(a.Start))
		}
	}
	slices.Sort(took)
	return max(1, quantile.Of(took, 0.5))
}
