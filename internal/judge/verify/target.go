package verify

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/judge/linear"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/load/pulse"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
)

// A Target is a running service in any language. The tests use only its HTTP routes. So a fault here is a
// behaviour of the buyers, such as hanging up.
type Target struct {
	rush.Target
	Product string        // the tests clear its records
	Timeout time.Duration // limit of one request
	run     string        // part of the buyers' names, so that each run has names of its own
	pulse   *pulse.Pulse  // shows when this process had no processor
}

// Sizes of a target's bursts. Each burst asks for more than the stock.
const (
	targetStock  = 100
	targetBuyers = 200
	pairs        = 40 // number of requests that are sent twice
)

// way is the mean delay of a slow connection, in each direction.
const (
	way       = 40 * time.Millisecond
	wayJitter = 25 * time.Millisecond
)

// finishTimeout is how long a service may take to complete the purchases of clients that have hung up. The
// time begins when a later burst of buyers has its answers.
const finishTimeout = 10 * time.Second

// Check asks for the audit, a request that changes nothing. It returns an error if the answer is not JSON, so
// that an ordinary web site gets no burst of requests. It ignores other errors, since a shop may not know the
// product yet.
func (t *Target) Check(ctx context.Context) error {
	_, err := t.Audit(ctx, t.Product)
	if wrong := (*json.SyntaxError)(nil); errors.As(err, &wrong) {
		return fmt.Errorf("--target is no shop: %w", err)
	}
	return ctx.Err()
}

// Play tests one strategy under one condition, and repeats the test if verdict.Confirm says so. An error means
// that the test itself failed, or that the service lacks a required route.
func (t *Target) Play(ctx context.Context, strategy string, f promise.Condition, promised verdict.Verdict) (Cell, error) {
	return verdict.Confirm(func() (Cell, error) { return t.play(ctx, strategy, f, promised) })
}

func (t *Target) play(ctx context.Context, strategy string, f promise.Condition, promised verdict.Verdict) (Cell, error) {
	start := time.Now()
	t.pulse = pulse.Start()
	defer t.pulse.Stop()
	t.run = "verify-" + strings.ToLower(rand.Text()[:8])
	c := Cell{
		Strategy: strategy, Fault: f, Promise: promised,
		Replay: fmt.Sprintf("shop verify --target %s --strategy %s --fault %s", t.BaseURL, strategy, f),
	}
	if t.Product != purchase.DefaultProduct {
		c.Replay += " --product " + t.Product
	}
	var err error
	switch f {
	case promise.Rush:
		err = t.rush(ctx, &c)
	case promise.ClientGone:
		err = t.clientGone(ctx, &c)
	case promise.Latency:
		err = t.latency(ctx, &c)
	case promise.Duplicates:
		err = t.duplicates(ctx, &c)
	default:
		err = fmt.Errorf("the fault %s needs more of a target than its routes", f)
	}
	if err != nil {
		return c, err
	}
	c.Evidence = c.evidence()
	c.Settle()
	c.DurationMS = time.Since(start).Milliseconds()
	return c, nil
}

func (t *Target) rush(ctx context.Context, c *Cell) error {
	config := rushConfig([]string{t.BaseURL}, t.Target, t.Target, c.Strategy, fault.Times{})
	config.Counts = linear.Unspecified // the service may count the remaining units some time after a sale
	config.Product, config.Timeout, config.Patience = t.Product, t.Timeout, lockstrategy.DefaultSettings().Wait
	result, err := rush.Run(ctx, config)
	if err == nil {
		result, err = rush.Restocks(ctx, config, result, 1)
	}
	if err != nil {
		return err
	}
	c.rushed(result, 0)
	return nil
}

func (t *Target) restock(ctx context.Context, stock int64) error {
	if err := t.Restock(ctx, t.Product, stock); err != nil {
		return fmt.Errorf("restock: %w", err)
	}
	return nil
}

func (t *Target) judge(ctx context.Context, c *Cell, facts fault.Facts, stock int64) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.Audited, err = t.Audit(ctx, t.Product); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	if c.Audited.Stocked != stock {
		return fmt.Errorf("%d units were put on sale, and the audit says %d: another client has restocked, or the service does not do what PUT asks", stock, c.Audited.Stocked)
	}
	compared, err := rush.Compare(ctx, t.Target, t.Product, buyers.Answers(facts.Answers), c.Audited)
	if err != nil {
		return fmt.Errorf("read the records: %w", err)
	}
	facts.Starved = t.pulse.Delays()
	c.judge(facts, compared.Lost, compared.Untold)
	if c.Verdict == verdict.Inconclusive && facts.Missed == "" { // adds the text of the service's own error
		i := slices.IndexFunc(facts.Answers, func(a buyers.Answer) bool { return a.Outcome == purchase.Failed || a.Outcome == purchase.Unknown })
		if i >= 0 {
			c.Reason += "; first error: " + facts.Answers[i].Detail
		}
	}
	return nil
}

func (t *Target) crowd(strategy string) buyers.Sender {
	return buyers.Sender{URLs: []string{t.BaseURL}, Strategy: strategy, Product: t.Product, Timeout: t.Timeout, Patience: lockstrategy.DefaultSettings().Wait}
}

// send returns ctx's error if ctx ends before every buyer is answered, since an incomplete burst proves nothing.
func send(ctx context.Context, sender buyers.Sender, all []buyers.Buyer) ([]buyers.Answer, error) {
	answers := sender.AtOnce(ctx, all)
	return answers, ctx.Err()
}

func (t *Target) buyers(name string, n int) []buyers.Buyer {
	all := make([]buyers.Buyer, n)
	for i := range all {
		all[i].Name = fmt.Sprintf("%s-%s-%03d", t.run, name, i)
	}
	return all
}
