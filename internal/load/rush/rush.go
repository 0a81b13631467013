// Package rush sends a crowd of buyers over real HTTP and compares the answers
// that they got with the stock and records afterwards.
//
//	restock -> crowd -> every answer is in -> audit -> verdict
//
// Package buyers sends the crowd. This package starts no servers and knows no
// strategy by name: its caller says where the shop is. loadtest/ has the same
// rush as a k6 script, targets for the vegeta program, and the routes that a
// service must have.
package rush

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/linear"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/buyers"
)

// Config is one rush.
type Config struct {
	BaseURLs []string // one a process, without a slash at the end; buyers are spread over them
	Shelf    Target   // where the restock goes
	Auditor  Auditor
	Strategy string
	Product  string
	Products []string // what the buyers ask for in turn; nil: all of them for Product
	Stock    int64    // units put on sale first
	Buyers   int
	Sizes    []int64       // the units that the buyers ask for, in turn; nil: one each
	Duration time.Duration // 0: each buyer asks once; else again and again for so long
	Timeout  time.Duration // of one request; far above the service's own limit of a buy
	Wait     time.Duration // of a buyer inside the service; 0: not known
	Lease    time.Duration // of its locks; 0: not known
	Patience time.Duration // above 0: buyers honour Retry-After; see buyers.Sender
	Progress func(answered int)
	// Counts says how the receipts' left follows the stock. Unspecified: rush does not check their
	// order.
	Counts linear.Counts

	// Struck reports, when all answers are in, whether a fault took effect. A fault takes answers
	// away, so buyers without one cast no doubt on the rest. What it breaks may keep every buyer
	// waiting until a lease has expired. Nil: there is no fault.
	Struck func() bool
	// Leavers learns which buyers wait, and has some of them hang up; nil: none does.
	Leavers *buyers.Leavers
	// Unique reports, after a crowd, whether another crowd would meet something else and must not
	// be sent in its place. Nil: it would meet the same.
	Unique func() bool
	// Mended waits until the servers that a fault broke serve again. It is called when all
	// answers are in; nil: nothing is broken.
	Mended func(ctx context.Context) error

	isKeyed bool // buyers send their orders again under their Idempotency-Keys
}

// tries is how often a crowd is sent whose buyers did not overlap.
const tries = 3

// Run restocks, sends the crowd, waits for every answer, and judges. An error
// is one of the harness: the service or its audit could not be reached, or
// ctx ended.
//
// A crowd shows nothing if no two of its buys were inside at once: on a busy machine two
// processors may serve the buyers one after the other. Run sends another then, up to three in
// all. It never repeats a crowd that has shown something.
//
// After a crowd that stalled Run sends another, since the machine may have stalled.
func Run(ctx context.Context, c Config) (Result, error) {
	return c.shown(func() (Result, error) { return c.once(ctx) })
}

// shown sends crowds until one has shown something.
func (c Config) shown(send func() (Result, error)) (Result, error) {
	for try := 1; ; try++ {
		r, err := c.sure(send)
		if errors.As(err, new(*RestockError)) {
			return c.notRestocked(err), nil
		}
		if err != nil || !r.oneByOne() || c.unique() || c.Buyers < 2 || try == tries {
			return r, err
		}
	}
}

func (c Config) unique() bool { return c.Unique != nil && c.Unique() }

// notRestocked returns the result of a rush whose restock failed, so that no buyer was sent.
func (c Config) notRestocked(err error) Result {
	r := result(c.Strategy, nil, audit.Report{Stocked: c.Stock})
	r.Verdict, r.Reason = verdict.Failed, "no buyer was sent: "+err.Error()
	return r
}

// sure sends a crowd, and another one after a crowd that stalled. If only the first stalled,
// the result is inconclusive: a lock may be kept now and then, or the machine stopped for
// seconds.
func (c Config) sure(send func() (Result, error)) (Result, error) {
	stood, err := send()
	if err != nil || stood.Verdict != verdict.Stalled || stood.neverReturns || c.unique() {
		return stood, err
	}
	again, err := send()
	if err != nil || again.Verdict != verdict.Holds && again.Verdict != verdict.Inconclusive {
		return again, err
	}
	stood.Verdict, stood.stoodOnce = verdict.Inconclusive, true
	stood.Reason = "stalled once, and a second crowd was not: " + stood.Reason
	return stood, nil
}

// once restocks and sends one crowd.
func (c Config) once(ctx context.Context) (Result, error) {
	restocked, err := c.restock(ctx)
	if err != nil {
		return Result{}, err
	}
	answers := c.crowd(ctx)
	return c.judged(ctx, answers, answers, restocked, Overlap(answers))
}

// restock returns how long it took: it goes where a purchase goes, and writes more.
func (c Config) restock(ctx context.Context) (took time.Duration, _ error) {
	start := time.Now()
	if err := c.Shelf.Restock(ctx, c.Product, c.Stock); err != nil {
		return 0, fmt.Errorf("restock before the rush: %w", err)
	}
	return time.Since(start), nil
}

// judged audits the product and compares it with the answers of those who asked for it.
// visits are the same, and the other answers to those who asked more than once: all of
// them show how the crowd got on. overlap is the most buys inside at once.
func (c Config) judged(ctx context.Context, answers, visits []buyers.Answer, restocked time.Duration, overlap int) (Result, error) {
	if c.Mended != nil {
		if err := c.Mended(ctx); err != nil {
			return Result{}, fmt.Errorf("after the rush: %w", err)
		}
	}
	after, err := c.after(ctx, answers)
	if err := errors.Join(err, ctx.Err()); err != nil {
		return Result{}, err
	}
	all, visits := slices.Concat(answers, after), slices.Concat(visits, after)
	audited, err := Settle(ctx, c.Auditor, c.Product, slices.ContainsFunc(all, func(a buyers.Answer) bool { return a.IsLost }))
	if err != nil {
		return Result{}, fmt.Errorf("audit after the rush: %w", err)
	}
	if audited.Stocked != c.Stock {
		return Result{}, fmt.Errorf("%d units were put on sale before the rush, and the audit after it says %d: somebody else has restocked, or the service does not do what PUT asks", c.Stock, audited.Stocked)
	}
	compared, err := Compare(ctx, c.Auditor, c.Product, buyers.Answers(all), audited)
	if err != nil {
		return Result{}, fmt.Errorf("read the records after the rush: %w", err)
	}
	r := result(c.Strategy, answers, audited)
	r.count(after)
	r.MaxOverlap, r.Lost, r.Untold = overlap, compared.Lost, compared.Untold
	struck, lease := c.Struck != nil && c.Struck(), c.Lease
	if struck {
		lease = max(c.Lease, c.Wait)
	}
	r.judge(audit.Demand(buyers.Answers(answers)), all, ProgressOf(visits, all, restocked, lease, c.Wait), struck)
	if !c.isKeyed { // repeated orders carry the receipt of an earlier request: Orders compares those
		receipts{c.Stock, c.Counts}.judge(&r, all, compared.Sales)
	}
	if !struck {
		err = leftover{c.BaseURLs, c.Auditor, c.Product, c.Wait}.judge(ctx, all, &r)
	}
	return r, err
}

// crowd sends the buyers and returns their answers.
func (c Config) crowd(ctx context.Context) (answers []buyers.Answer) {
	answered := 0
	sender := c.at(c.BaseURLs)
	sender.Answered = func(buyers.Answer) { answered++; c.Progress(answered) }
	run := crowdName()
	if c.Duration > 0 {
		sender.Answered = func(a buyers.Answer) { answers = append(answers, a); c.Progress(len(answers)) }
		sender.Keep(ctx, buyers.Loop{
			Duration: c.Duration, Askers: buyers.Constant(c.Buyers),
			Buyer: func(_ int, n int64) buyers.Buyer { return buyers.Buyer{Name: fmt.Sprintf("%s-%05d", run, n)} },
		})
		return answers
	}
	all := make([]buyers.Buyer, c.Buyers)
	for n := range all {
		all[n].Name = fmt.Sprintf("%s-%05d", run, n)
		if len(c.Products) > 0 {
			all[n].Product = c.Products[n%len(c.Products)]
		}
		if len(c.Sizes) > 0 {
			all[n].Units = c.Sizes[n%len(c.Sizes)]
		}
	}
	return sender.AtOnce(ctx, all)
}

// at sends buyers of this rush to some of its processes.
func (c Config) at(urls []string) buyers.Sender {
	return buyers.Sender{URLs: urls, Strategy: c.Strategy, Product: c.Product, Timeout: c.Timeout, Patience: c.Patience, Leavers: c.Leavers}
}

// crowdName makes the purchasers of a crowd its own.
func crowdName() string { return "rush-" + strings.ToLower(rand.Text()[:8]) }
