package rush

import (
	"context"
	"fmt"
	"slices"

	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/purchase"
)

// after sends single buyers after the burst and returns their answers. They show whether the shop serves a
// buyer when no other buyer competes.
//
// If buyers of the burst gave up or lost the lock, one buyer asks at each process. The shop serves it at once
// if those buyers had only been slower than others. It has to wait if a lock is still held.
//
// If the orders had several sizes, one buyer asks for all units that are left, to show whether they can be
// sold. In the burst, even a small order may have been refused correctly, while a larger one was under way.
//
// If buyers were refused as sold out while other orders may have reserved units, one buyer sends the same
// order again. If it is refused too, the units that are left have leaked.
func (c Config) after(ctx context.Context, crowd []buyers.Answer) (late []buyers.Answer, _ error) {
	gaveUp := func(a buyers.Answer) bool {
		return a.Outcome == purchase.Busy || a.Outcome == purchase.LockLost
	}
	if slices.ContainsFunc(crowd, gaveUp) && !isSilent(crowd) {
		var all []buyers.Buyer
		for range c.BaseURLs {
			all = append(all, buyers.Buyer{Name: crowdName() + "-late"})
		}
		late = c.sender(c.BaseURLs).AtOnce(ctx, all)
	}
	hasOneSize := len(slices.Compact(slices.Clone(c.Sizes))) <= 1
	if hasOneSize && (late != nil || !mayHaveReserved(crowd)) || ctx.Err() != nil {
		return late, nil
	}
	audited, err := c.Auditor.Audit(ctx, c.Product)
	if err != nil || audited.Leftover <= 0 {
		return late, err
	}
	rest := buyers.Buyer{Name: crowdName() + "-rest", Units: audited.Leftover}
	if hasOneSize {
		rest.Units = min(rest.Units, slices.Max(append([]int64{1}, c.Sizes...)))
	}
	return append(late, c.sender(c.BaseURLs[:1]).One(ctx, rest)), nil
}

// mayHaveReserved reports whether orders that did not end in a sale may explain refusals as sold out. It returns
// false if a buyer has waited for an answer until its time-out, since the next buyer would wait as long.
func mayHaveReserved(crowd []buyers.Answer) bool {
	has := func(is func(a buyers.Answer) bool) bool { return slices.ContainsFunc(crowd, is) }
	return has(func(a buyers.Answer) bool { return a.Outcome == purchase.SoldOut }) &&
		has(func(a buyers.Answer) bool { return a.Outcome != purchase.Sold && a.Outcome != purchase.SoldOut }) &&
		!has(func(a buyers.Answer) bool {
			return a.Outcome == purchase.Unknown && a.Status == 0 && !a.IsLost && !a.HungUp
		})
}

// BuyRest sends a burst that asks for more units than a fault has left. It shows whether the rest can still be
// sold, and whether the shop sells more than the rest. A connection that the fault broke may cost a buyer an
// error, so after an error BuyRest sends another burst, at most twice. All answers count for stock and
// records, so this does not hide a failure. `last` contains the answers of the last burst, which must all be
// served. `name` is the prefix of the buyers' names.
func BuyRest(ctx context.Context, s buyers.Sender, a Auditor, name string) (all, last []buyers.Answer, _ error) {
	for burst := range 3 {
		audited, err := a.Audit(ctx, s.Product)
		if err != nil {
			return nil, nil, fmt.Errorf("audit after the fault: %w", err)
		}
		crowd := make([]buyers.Buyer, min(max(2*audited.Leftover, 10), audited.Leftover+1000))
		for i := range crowd {
			crowd[i].Name = fmt.Sprintf("%s%d-%03d", name, burst, i)
		}
		last = s.AtOnce(ctx, crowd)
		all = append(all, last...)
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		if !slices.ContainsFunc(last, func(a buyers.Answer) bool { return a.Outcome == purchase.Unknown || a.Outcome == purchase.Failed }) {
			break
		}
	}
	return all, last, nil
}
