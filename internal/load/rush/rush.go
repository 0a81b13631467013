// Package rush sends a burst of buyers over HTTP, and compares their answers with the stock and
// the records afterwards.
//
//	restock -> burst -> all answers -> audit -> verdict
//
// Package buyers sends the requests unless Config.Send is set; the program loadtest/run sets it to use k6 or
// vegeta. This package starts no servers and knows no strategy by name.
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
	"github.com/oversell/oversell/internal/load/pulse"
)

// A Generator sends one request for each buyer, all at once, and returns the answers in the order of
// the buyers. Its error ends the rush.
type Generator func(context.Context, buyers.Sender, []buyers.Buyer) ([]buyers.Answer, error)

// Config configures one rush.
type Config struct {
	BaseURLs []string // address of each process of the shop, without a trailing slash; buyers use them in turn
	Shelf    Target   // the service that is restocked
	Auditor  Auditor
	Strategy string
	Product  string
	Products []string // the buyers ask for these in turn; nil: all ask for Product
	Lone     string   // one more product, with a single unit and a single buyer; "" for none
	Stock    int64    // units on sale
	Buyers   int
	Sizes    []int64       // units of the orders, in turn; nil: one unit each
	Duration time.Duration // 0: each buyer asks once; otherwise buyers ask repeatedly for this time
	Timeout  time.Duration // limit of one request; far longer than the wait inside the service
	Wait     time.Duration // maximum wait inside the service; 0: unknown
	Lease    time.Duration // lease of the service's locks; 0: unknown
	Healthy  bool          // every server of the service is known to run, unless a fault takes effect
	LetsWait bool          // the service lets each buyer wait for its maximum wait, unless a fault takes effect
	Patience time.Duration // longest wait in the service; above 0, refused buyers obey Retry-After and ask again
	Progress func(answered int)
	Send     Generator // sends the burst; nil: buyers.Sender.AtOnce. It must be nil if Duration is set.
	Inside   Inside    // which buyers may be buying during a restock
	// Counts says how `left` in a receipt relates to the stock. With Unspecified, rush does not check whether
	// some order of the purchases explains the answers.
	Counts linear.Counts

	// FaultTookEffect reports whether a fault was injected. It is called after all answers. A fault may lose
	// answers, so a missing answer then proves nothing about the strategy. It may also keep every buyer
	// waiting until a lease expires. Nil: no fault is injected.
	FaultTookEffect func() bool
	// CannotRepeat is called after a burst. It reports whether a second burst cannot have the same conditions,
	// for example because a user has injected a fault by hand. Nil: every burst can be repeated.
	CannotRepeat func() bool
	// AwaitRepair waits until the servers that a fault broke serve again. It is called after all answers. Nil:
	// no fault breaks a server.
	AwaitRepair func(ctx context.Context) error

	isKeyed bool // buyers send their orders again under their Idempotency-Keys
	pulse   *pulse.Pulse
}

// Run restocks, sends a burst, waits for every answer, and judges. It returns an error if the service or its
// audit is unreachable, or if ctx ends. verdict.Confirm decides whether to call Run again.
func Run(ctx context.Context, c Config) (Result, error) {
	defer c.startPulse()()
	return c.settled(c.once(ctx))
}

// startPulse starts to measure how long this process gets no processor. The caller must call stop.
func (c *Config) startPulse() (stop func()) {
	c.pulse = pulse.Start()
	return c.pulse.Stop
}

// settled completes the result of a burst. If the service could not restock before it, no buyer was sent, and
// the verdict is Failed.
func (c Config) settled(r Result, err error) (Result, error) {
	if errors.As(err, new(*RestockError)) {
		r = result(c.Strategy, nil, audit.Sums{Stocked: c.Stock})
		r.Verdict, r.Reason, err = verdict.Failed, "no buyer was sent: "+err.Error(), nil
	}
	r.isUnique = c.CannotRepeat != nil && c.CannotRepeat()
	return r, err
}

func (c Config) once(ctx context.Context) (Result, error) {
	restocked, err := c.restock(ctx)
	if err != nil {
		return Result{}, err
	}
	answers, err := c.crowd(ctx)
	if err != nil {
		return Result{}, err
	}
	return c.judged(ctx, answers, answers, restocked, Overlap(answers))
}

// restock restocks the product and returns how long that took. A purchase should take no longer, since it uses
// the same servers and writes less.
func (c Config) restock(ctx context.Context) (took time.Duration, _ error) {
	start := time.Now()
	if err := c.Shelf.Restock(ctx, c.Product, c.Stock); err != nil {
		return 0, fmt.Errorf("restock before the rush: %w", err)
	}
	return time.Since(start), nil
}

// judged audits the product and compares the audit with the answers of the buyers. `visits` also contains the
// answers to repeated requests, and shows the progress of the burst. `overlap` is the maximum number of
// purchases inside the shop at once.
func (c Config) judged(ctx context.Context, answers, visits []buyers.Answer, restocked time.Duration, overlap int) (Result, error) {
	if c.AwaitRepair != nil {
		if err := c.AwaitRepair(ctx); err != nil {
			return Result{}, fmt.Errorf("after the rush: %w", err)
		}
	}
	struck, lease := c.FaultTookEffect != nil && c.FaultTookEffect(), c.Lease
	after, counted, err := []buyers.Answer(nil), []buyers.Answer(nil), error(nil)
	if struck {
		lease = max(c.Lease, c.Wait)
		after, counted, err = BuyRest(ctx, c.sender(c.BaseURLs), c.Auditor, crowdName()+"-rest")
	} else {
		after, err = c.after(ctx, answers)
		counted = slices.Concat(answers, after)
	}
	if err := errors.Join(err, ctx.Err()); err != nil {
		return Result{}, err
	}
	all, visits := slices.Concat(answers, after), slices.Concat(visits, after)
	audited, err := settle(ctx, c.Auditor, c.Product, slices.ContainsFunc(all, func(a buyers.Answer) bool { return a.IsLost }))
	if err != nil {
		return Result{}, fmt.Errorf("audit after the rush: %w", err)
	}
	if audited.Stocked != c.Stock {
		return Result{}, fmt.Errorf("%d units were put on sale before the rush, and the audit after it says %d: another client has restocked, or the service does not do what PUT asks", c.Stock, audited.Stocked)
	}
	compared, err := Compare(ctx, c.Auditor, c.Product, buyers.Answers(all), audited)
	if err != nil {
		return Result{}, fmt.Errorf("read the records after the rush: %w", err)
	}
	r := result(c.Strategy, answers, audited)
	r.count(after)
	r.MaxOverlap, r.Lost, r.Untold = overlap, compared.Lost, compared.Untold
	r.judge(c, audit.Demand(buyers.Answers(answers)), counted, ProgressOf(visits, all, restocked, lease, c.Wait, c.pulse.Delays()), !struck)
	if struck {
		r.interrupted(answers, len(after))
	}
	if !c.isKeyed { // a repeated order has an earlier receipt, which RepeatedOrders compares
		receipts{c.Stock, c.Counts}.judge(&r, all, compared.Sales)
	}
	if !struck {
		if _, own := c.Auditor.(Database); own {
			if err := c.readHistory(ctx, &r, compared.Sales); err != nil {
				return r, err
			}
		}
		err = leftover{c.BaseURLs, c.Auditor, c.Product, c.Wait}.judge(ctx, all, &r)
	}
	return r, err
}

func (c Config) crowd(ctx context.Context) (answers []buyers.Answer, _ error) {
	answered := 0
	sender := c.sender(c.BaseURLs)
	sender.Answered = func(buyers.Answer) { answered++; c.Progress(answered) }
	run := crowdName()
	if c.Duration > 0 {
		sender.Answered = func(a buyers.Answer) { answers = append(answers, a); c.Progress(len(answers)) }
		sender.Keep(ctx, buyers.Loop{
			Duration: c.Duration, Askers: c.Buyers,
			Buyer: func(n int64) buyers.Buyer { return buyers.Buyer{Name: fmt.Sprintf("%s-%05d", run, n)} },
		})
		return answers, nil
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
	if c.Lone != "" {
		all = slices.Insert(all, c.Buyers/2, buyers.Buyer{Name: run + "-lone", Product: c.Lone})
	}
	if c.Send != nil {
		return c.Send(ctx, sender, all)
	}
	return sender.AtOnce(ctx, all), nil
}

// sender returns a sender for this rush's buyers, which ask the processes at the given URLs.
func (c Config) sender(urls []string) buyers.Sender {
	return buyers.Sender{URLs: urls, Strategy: c.Strategy, Product: c.Product, Timeout: c.Timeout, Patience: c.Patience}
}

func crowdName() string { return "rush-" + strings.ToLower(rand.Text()[:8]) }
