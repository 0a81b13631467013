package verify

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/load/rush"
)

// A FirstUse is the burst of promise.FirstUse: many new products at once, each used for the first
// time by all its buyers at the same moment. Several buyers then create a product's lock or queue
// at once.
type FirstUse struct {
	URL      string // of a shop that was just started
	Strategy string
	Auditor  rush.Auditor
	// Shelve puts units of a new product on sale without that shop.
	Shelve  func(ctx context.Context, product string, units int64) error
	Timeout time.Duration // of one request

	overlap int // maximum number of concurrent buyers of one product so far
}

// FirstUseBuyers is the number of buyers for each product, more than there are units.
const FirstUseBuyers = 4

const (
	firstUseProducts = 48
	firstUseStock    = 1
)

// Play sends one burst and adds its result to the cell. round makes the product names unique. An
// error comes from the harness.
func (f *FirstUse) Play(ctx context.Context, round int, c *Cell) error {
	names := make([]string, firstUseProducts)
	for i := range names {
		names[i] = fmt.Sprintf("first-%s-%d-%02d", f.Strategy, round, i)
		if err := f.Shelve(ctx, names[i], firstUseStock); err != nil {
			return fmt.Errorf("put a new product on sale: %w", err)
		}
	}
	answers := make([][]buyers.Answer, len(names))
	var crowds sync.WaitGroup
	for i, name := range names {
		crowds.Go(func() { answers[i] = f.crowd(ctx, name) })
	}
	crowds.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	for i, name := range names {
		if err := f.judge(ctx, name, answers[i], c); err != nil {
			return err
		}
	}
	c.Struck = fmt.Sprintf("%d new products at once with %d buyers each, in each of %d new shops; at most %d of a product inside",
		firstUseProducts, FirstUseBuyers, round+1, f.overlap)
	c.Evidence = c.evidence()
	return nil
}

// crowd sends all buyers of one product.
func (f *FirstUse) crowd(ctx context.Context, name string) []buyers.Answer {
	all := make([]buyers.Buyer, FirstUseBuyers)
	for i := range all {
		all[i].Name = fmt.Sprintf("%s-%d", name, i)
	}
	sender := buyers.Sender{URLs: []string{f.URL}, Strategy: f.Strategy, Product: name, Timeout: f.Timeout}
	return sender.AtOnce(ctx, all)
}

// judge judges one product. The cell keeps the first violation. It holds if no product breaks and
// at least one proves that it holds.
func (f *FirstUse) judge(ctx context.Context, name string, answers []buyers.Answer, c *Cell) error {
	audited, err := f.Auditor.Audit(ctx, name)
	if err != nil {
		return fmt.Errorf("audit %s: %w", name, err)
	}
	compared, err := rush.Compare(ctx, f.Auditor, name, buyers.Answers(answers), audited)
	if err != nil {
		return fmt.Errorf("read the records of %s: %w", name, err)
	}
	e := audit.Evidence{
		Report: audited, Demand: audit.Demand(buyers.Answers(answers)), MaxOverlap: rush.Overlap(answers), Lost: compared.Lost, Untold: compared.Untold,
	}
	e.Count(buyers.Answers(answers))
	v, why := audit.Judge(e)
	f.overlap = max(f.overlap, e.MaxOverlap)
	c.Lost += compared.Lost
	c.Audited = c.Audited.Plus(audited)
	undecided := c.Verdict == "" || c.Verdict == verdict.Inconclusive
	switch {
	case v == verdict.Inconclusive && c.Verdict != "", v == verdict.Holds && !undecided:
	case undecided || c.Verdict == verdict.Holds && v != verdict.Holds:
		c.Verdict, c.Reason = v, name+": "+why
	}
	return nil
}
