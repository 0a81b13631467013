package verify

import (
	"context"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/load/buyers"
)

// latency is a crowd behind a connection that holds back requests and answers.
func (t *Target) latency(ctx context.Context, c *Cell) error {
	slow, err := fault.NewDelayProxy(t.BaseURL, way, wayJitter)
	if err != nil {
		return fmt.Errorf("--target: %w", err)
	}
	defer slow.Close()
	if err := t.restock(ctx, targetStock); err != nil {
		return err
	}
	crowd := t.crowd(c.Strategy)
	crowd.Client = buyers.NewClient(slow.Dial)
	defer crowd.Client.Close()
	came, err := send(ctx, crowd, t.buyers("late", targetBuyers))
	if err != nil {
		return err
	}
	const least = 2 * (way - wayJitter)
	quickest := time.Duration(-1)
	for _, v := range came {
		if took := v.Begun.Sub(v.Start); !v.Begun.IsZero() && (quickest < 0 || took < quickest) {
			quickest = took
		}
	}
	facts := fault.Facts{
		Answers: came, Last: came,
		Proof: fmt.Sprintf("the slow way held every buyer back for at least %s", quickest.Round(time.Millisecond)),
	}
	if quickest < least {
		facts.Missed = fmt.Sprintf("a buyer was answered within %s: the slow way did not hold it back", quickest)
	}
	return t.judge(ctx, c, facts, targetStock)
}
