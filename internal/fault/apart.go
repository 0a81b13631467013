package fault

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/load/pulse"
	"github.com/oversell/oversell/internal/purchase"
)

// Apart checks that a lock on one product does not block another product. It stops a buyer of the testbed's
// product in shop A, just before its COMMIT. This buyer, the holder, keeps its lock and its rows. Meanwhile
// each shop must sell a unit of the other product. Both products must have stock, and t.Log must be new.
//
// Apart does not judge speed. It acts if a buyer of the other product gets no unit, or gets it only after half
// of the holder's lease. Then Apart lets the holder finish and sends each shop another buyer. If these later
// buyers need at most a quarter of the first buyer's time, the holder blocked the first buyer, and
// facts.Stalled says so. Otherwise facts.Missed gives the reason.
func (t *Testbed) Apart(ctx context.Context, other string) (facts Facts, err error) {
	t.buyers = newClients(t)
	defer t.buyers.close()
	others := newClients(t)
	others.sender.Product = other
	defer others.close()
	alive := pulse.Start()
	defer alive.Stop()
	if err := holdFor(ctx, t, failpoint.Commit, t.Times.Wait); err != nil {
		facts.Missed = err.Error()
		err = t.repair(ctx)
		t.buyers.wait()
		return facts, err
	}
	meanwhile := oneEach(ctx, t, others, "meanwhile")
	if err := t.repair(ctx); err != nil { // lets the holder finish
		return facts, err
	}
	t.buyers.wait()
	facts.Answers = others.answers()
	if err := ctx.Err(); err != nil {
		return facts, err
	}
	if slices.IndexFunc(meanwhile, t.Times.unserved) < 0 {
		facts.Proof = "while a buyer stood inside its COMMIT, one of another product was sold a unit at each process"
		return facts, nil
	}
	facts.Stalled, facts.Missed = heldUp(meanwhile, oneEach(ctx, t, others, "afterwards"), t.Times, alive.Delays())
	facts.Answers = others.answers()
	return facts, ctx.Err()
}

// oneEach sends one buyer to each shop at the same time and waits for their answers.
func oneEach(ctx context.Context, t *Testbed, b *clients, name string) []buyers.Answer {
	answers := make(chan buyers.Answer, len(t.shops()))
	for i, shop := range t.shops() {
		go func() { answers <- patient(ctx, t, b, shop, fmt.Sprintf("%s-%d", name, i)) }()
	}
	var all []buyers.Answer
	for range t.shops() {
		all = append(all, <-answers)
	}
	return all
}

// patient buys, and retries for a short time while the shop answers Busy without waiting. On a cluster, two
// nodes may sell the same product at the same time, and one of the sales then fails with error 1213.
func patient(ctx context.Context, t *Testbed, b *clients, shop *CellShop, name string) buyers.Answer {
	start := time.Now()
	a := b.buy(ctx, shop, name)
	for n := 1; a.Outcome == purchase.Busy && time.Since(start) < t.Times.within()/2 && n < 10; n++ {
		time.Sleep(10 * time.Millisecond)
		a = b.buy(ctx, shop, fmt.Sprintf("%s-again-%d", name, n))
	}
	return a
}

// unserved reports whether the buyer got nothing, or got a unit only when the holder's lease might have ended.
func (t Times) unserved(a buyers.Answer) bool {
	return a.Outcome != purchase.Sold || a.End.Sub(a.Start) > t.within()
}

// heldUp says why a buyer of another product was not served. It returns the reason as `stalled` if the holder
// blocked the buyer, and as `missed` if a slow machine or an error may be the cause. Time in which this
// process itself was delayed does not count for the first buyer.
func heldUp(meanwhile, afterwards []buyers.Answer, times Times, starved pulse.Delays) (stalled, missed string) {
	first := meanwhile[slices.IndexFunc(meanwhile, times.unserved)]
	slowest := time.Duration(0)
	for _, a := range afterwards {
		if a.Outcome != purchase.Sold {
			return "", fmt.Sprintf("a buyer of another product was answered %s (%s), also when no holder was in its section", a.Outcome, a.Detail)
		}
		slowest = max(slowest, a.End.Sub(a.Start))
	}
	took := first.End.Sub(first.Start)
	if delayed := starved.Within(first.Start, first.End); 4*slowest > took-delayed {
		return "", fmt.Sprintf("a buyer of another product was answered %s after %d ms, and others took %d ms when no holder was in its section; %s: the machine is too slow to tell",
			first.Outcome, took.Milliseconds(), slowest.Milliseconds(), starved.Describe(first.Start, first.End))
	}
	return fmt.Sprintf("two products wait for each other: a buyer of another product was answered %s after %d ms while a buyer stood in its section, and others were sold a unit within %d ms when it had gone on",
		first.Outcome, took.Milliseconds(), slowest.Milliseconds()), ""
}
