package own

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
)

// restock lets another process restock the product after a buyer has started. In the shop, a restock waits for the row
// lock. So the event cannot happen while a transaction is open.
func (e events) restock(context.Context) ([]move, error) {
	begun := func(b *buyer) bool { return b.steps > 0 }
	if slices.ContainsFunc(e.buyers, (*buyer).open) || !slices.ContainsFunc(e.buyers, begun) {
		return nil, nil
	}
	units := e.x.spec.restocked()
	return []move{{
		Choice: schedule.Choice{Token: "restock", Name: "restock", Global: true},
		Text:   fmt.Sprintf("another process restocks, and %d units are on sale", units),
		Make:   func(ctx context.Context) error { return e.putOnSale(ctx, units) },
	}}, nil
}

// restocked returns the number of units that the event puts on sale: enough for all buyers, and more than before. So a
// buyer that writes the earlier stock causes a visible error.
func (s Spec) restocked() int64 {
	units := s.Stock
	for i := range s.Buyers {
		units += s.Units.Of(i + 1)
	}
	return units
}

func (r *run) putOnSale(ctx context.Context, units int64) error {
	state, err := r.x.stock.Read(ctx)
	if err != nil {
		return err
	}
	for _, sale := range state.Sales {
		r.restocked.cleared = append(r.restocked.cleared, sale.Purchaser)
	}
	slices.Sort(r.restocked.cleared)
	for _, b := range r.buyers {
		if b.steps > 0 {
			r.restocked.before = append(r.restocked.before, b.id)
		}
	}
	var kept []purchase.Resetter
	if lock, ok := r.x.spec.Strategy.New(r.x.ungated()).(purchase.Resetter); ok {
		kept = append(kept, lock)
	}
	if err := purchase.Restock(ctx, r.x.stock.Admin, kept, r.x.spec.Product, units); err != nil {
		return err
	}
	r.knows.books.known = false
	r.knows.commits++
	for _, s := range r.x.servers {
		s.Touch()
		r.buyers.changed(s.Name)
	}
	r.buyers.sawEnd()
	return nil
}

// ungated returns the dependencies of a process without a buyer. No gate holds its commands.
func (x *Runner) ungated() lockstrategy.Deps {
	d := x.deps(0)
	d.DB, d.Redlock = x.stock.Admin, nil
	for _, s := range x.servers {
		if strings.HasPrefix(s.Name, "redlock") {
			d.Redlock = append(d.Redlock, s.Admin())
		} else {
			d.Redis = s.Admin()
		}
	}
	return d
}

// A restocking records the facts at the time of the restock, to explain the buyers' answers.
type restocking struct {
	cleared []string // purchasers whose records the restock deleted
	before  []int    // buyers that had called Buy before the restock
}

// explains reports whether a buyer's answer is about the stock before the restock. Stock and records need not agree
// with such an answer.
func (r restocking) explains(b *buyer) bool {
	return slices.Contains(r.cleared, b.name) || purchase.OutcomeOf(b.err) == purchase.SoldOut && slices.Contains(r.before, b.id)
}
