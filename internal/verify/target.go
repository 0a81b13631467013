package verify

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/promise"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/rush"
	"github.com/oversell/oversell/internal/verdict"
)

// A Target is a service that runs already, in whatever language. Nothing of it
// is touched but its routes: what strikes is how its buyers behave.
type Target struct {
	rush.Target
	Product string        // its records are cleared
	Timeout time.Duration // of one request
	run     string        // makes the purchasers of this run its own
}

// Crowds of a target's cells. Each is well above what is on sale.
const (
	targetStock  = 100
	targetBuyers = 200
	pairs        = 40 // of one request sent twice
)

// way is what each direction of a slow connection holds back, more or less.
const (
	way       = 40 * time.Millisecond
	wayJitter = 25 * time.Millisecond
)

// finishPatience is how long a service may take, once it has served a whole crowd
// after them, to finish what buyers who hung up have left behind.
const finishPatience = 10 * time.Second

// Check asks for the books, which changes nothing. An error when what comes is no
// JSON: a page for people is no shop, and gets no crowd. A shop may not know the
// product yet.
func (t *Target) Check(ctx context.Context) error {
	_, err := t.Audit(ctx, t.Product)
	if wrong := (*json.SyntaxError)(nil); errors.As(err, &wrong) {
		return fmt.Errorf("--target is no shop: %w", err)
	}
	return ctx.Err()
}

// Play plays one cell. An error is one of the harness, or of a service that does
// not speak the routes.
func (t *Target) Play(ctx context.Context, strategy string, f promise.Condition, promised verdict.Verdict) (Cell, error) {
	start := time.Now()
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
	c.settle()
	c.DurationMS = time.Since(start).Milliseconds()
	return c, nil
}

func (t *Target) rush(ctx context.Context, c *Cell) error {
	config := RushConfig([]string{t.BaseURL}, t.Target, t.Target, c.Strategy, 0)
	config.Product, config.Timeout = t.Product, t.Timeout
	result, err := rush.Run(ctx, config)
	if err != nil {
		return err
	}
	c.rushed(result, 0)
	return nil
}

// clientGone lets a third of a crowd hang up, each at a moment of its own within
// the time in which a buy is usually answered.
func (t *Target) clientGone(ctx context.Context, c *Cell) error {
	if err := t.restock(ctx, targetStock); err != nil {
		return err
	}
	first := t.crowd(c.Strategy).Send(ctx, t.buyers("first", 10))
	var took []time.Duration
	for _, v := range first {
		took = append(took, v.End.Sub(v.Start))
	}
	slices.Sort(took)
	usual := took[len(took)/2]
	crowd := t.buyers("crowd", targetStock)
	for i := range crowd {
		if i%3 == 0 {
			crowd[i].HangUp = 1 + time.Duration(mathrand.Int64N(int64(usual)))
		}
	}
	came := t.crowd(c.Strategy).Send(ctx, crowd)
	books, err := t.Audit(ctx, t.Product)
	if err != nil {
		return fmt.Errorf("audit after the hang-ups: %w", err)
	}
	last := t.crowd(c.Strategy).Send(ctx, t.buyers("last", int(max(2*books.Leftover, 20))))

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
	// What they had begun may end after all others were served: the books have to
	// agree in the end. What was sold twice stays so.
	for deadline := time.Now().Add(finishPatience); ; time.Sleep(100 * time.Millisecond) {
		if err := t.judge(ctx, c, facts, targetStock); err != nil {
			return err
		}
		unfinished := c.Verdict == verdict.Leaked || c.Verdict == verdict.Drifted || c.Verdict == verdict.Stalled
		if !unfinished || time.Now().After(deadline) {
			return nil
		}
	}
}

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
	crowd.Dial = slow.Dial
	came := crowd.Send(ctx, t.buyers("late", targetBuyers))
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

// duplicates sends each order twice at once under one key, and once more when
// all is over.
func (t *Target) duplicates(ctx context.Context, c *Cell) error {
	const stock = pairs / 2
	if err := t.restock(ctx, stock); err != nil {
		return err
	}
	orders := t.buyers("order", pairs)
	for i := range orders {
		orders[i].Key = orders[i].Name
	}
	var twice []rush.Buyer
	for _, o := range orders {
		twice = append(twice, o, o)
	}
	came := t.crowd(c.Strategy).Send(ctx, twice)
	again := t.crowd(c.Strategy).Send(ctx, orders)

	var told []rush.Answer
	var both, repeated, changed int
	for i := range orders {
		one, other, later := came[2*i], came[2*i+1], again[i]
		told = append(told, oneOf(one, other, later))
		sales := map[int64]bool{}
		for _, v := range []rush.Answer{one, other, later} {
			if v.Outcome == purchase.Sold {
				sales[v.ID] = true
			}
		}
		switch {
		case len(sales) > 1:
			repeated++
		case (one.Outcome == purchase.Sold || other.Outcome == purchase.Sold) && later.Outcome != purchase.Sold:
			changed++
		}
		if len(sales) > 0 && atOnce(one, other) {
			both++
		}
	}
	facts := fault.Facts{
		Answers: told, Last: told,
		Proof: fmt.Sprintf("of %d orders that were sold under a key, the second request was out before the first was answered; all were sent a third time", both),
	}
	if both == 0 {
		facts.Missed = "no order was sold whose two requests were under way at once"
		if status := came[0].Status; status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status == http.StatusNotImplemented {
			facts.Missed = fmt.Sprintf("POST /product/buy with an Idempotency-Key is answered %d: without keys, give --fault rush,client-gone,latency", status)
		}
	}
	if err := t.judge(ctx, c, facts, stock); err != nil {
		return err
	}
	switch {
	case c.Verdict == verdict.Lost: // worse
	case repeated > 0:
		c.Verdict, c.Reason = verdict.Duplicated, fmt.Sprintf("%d orders were sold more than once under one Idempotency-Key; %s", repeated, c.Reason)
	case changed > 0 && (c.Verdict == verdict.Holds || c.Verdict == verdict.Inconclusive):
		c.Verdict, c.Reason = verdict.Leaked, fmt.Sprintf("%d buyers who have bought were told no when they sent the same request again", changed)
	}
	return nil
}

// oneOf is what the buyer of an order knows after all three answers.
func oneOf(visits ...rush.Answer) rush.Answer {
	known := visits[len(visits)-1]
	for _, outcome := range []purchase.Outcome{purchase.Unknown, purchase.Sold} {
		for _, v := range visits {
			if v.Outcome == outcome {
				known = v
			}
		}
	}
	known.Start, known.End = visits[0].Start, visits[0].End
	return known
}

// atOnce: both requests were out before either was answered.
func atOnce(a, b rush.Answer) bool {
	if a.Sent.IsZero() || b.Sent.IsZero() || a.Begun.IsZero() || b.Begun.IsZero() {
		return false
	}
	return a.Sent.Before(b.Begun) && b.Sent.Before(a.Begun)
}

// restock puts units on sale.
func (t *Target) restock(ctx context.Context, stock int64) error {
	if err := t.Restock(ctx, t.Product, stock); err != nil {
		return fmt.Errorf("restock: %w", err)
	}
	return nil
}

// judge reads the books and holds the answers against them.
func (t *Target) judge(ctx context.Context, c *Cell, facts fault.Facts, stock int64) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.Books, err = t.Audit(ctx, t.Product); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	if c.Books.Stocked != stock {
		return fmt.Errorf("%d units were put on sale, and the audit says %d: somebody else has restocked, or the service does not do what PUT asks", stock, c.Books.Stocked)
	}
	lost, untold, err := rush.Compare(ctx, t.Target, t.Product, rush.Answers(facts.Answers), c.Books)
	if err != nil {
		return fmt.Errorf("read the records: %w", err)
	}
	c.judge(facts, lost, untold)
	if c.Verdict == verdict.Inconclusive && facts.Missed == "" { // why, in the service's own words
		i := slices.IndexFunc(facts.Answers, func(a rush.Answer) bool { return a.Outcome == purchase.Failed || a.Outcome == purchase.Unknown })
		if i >= 0 {
			c.Reason += "; first error: " + facts.Answers[i].Detail
		}
	}
	return nil
}

// crowd is buyers at the target.
func (t *Target) crowd(strategy string) rush.Crowd {
	return rush.Crowd{BaseURLs: []string{t.BaseURL}, Strategy: strategy, Product: t.Product, Timeout: t.Timeout}
}

// buyers are n who stay.
func (t *Target) buyers(name string, n int) []rush.Buyer {
	all := make([]rush.Buyer, n)
	for i := range all {
		all[i].Name = fmt.Sprintf("%s-%s-%03d", t.run, name, i)
	}
	return all
}
