package rush

import (
	"context"
	"slices"

	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/purchase"
)

// after sends single buyers after the burst and returns their answers. They show whether a
// buyer is served when no other buyer competes.
//
// If buyers of the burst gave up or lost the lock, one buyer asks at each process. It is served at
// once if the others were merely faster. It also waits if a lock is still held.
//
// If the orders had several sizes, one buyer asks for all units that are left. It shows whether
// they can be sold. A buyer of few units may have been refused correctly while a larger order was
// under way.
//
// If the burst was refused as sold out while other orders may have reserved units, one buyer asks
// as they did. It is refused if the units that are left have leaked.
func (c Config) after(ctx context.Context, crowd []buyers.Answer) (late []buyers.Answer, _ error) {
	gaveUp := func(a buyers.Answer) bool {
		return a.Outcome == purchase.Busy || a.Outcome == purchase.LockLost
	}
	if slices.ContainsFunc(crowd, gaveUp) && !isSilent(crowd) {
		var all []buyers.Buyer
		for range c.BaseURLs {
			all = append(all, buyers.Buyer{Name: crowdName() + "-late"})
		}
		late = c.at(c.BaseURLs).AtOnce(ctx, all)
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
	return append(late, c.at(c.BaseURLs[:1]).One(ctx, rest)), nil
}

// mayHaveReserved reports whether orders without a sale may explain refusals as sold out. It returns
// false if a buyer has waited for an answer until its time-out: another buyer would wait as long.
func mayHaveReserved(crowd []buyers.Answer) bool {
	has := func(is func(a buyers.Answer) bool) bool { return slices.ContainsFunc(crowd, is) }
	return has(func(a buyers.Answer) bool { return a.Outcome == purchase.SoldOut }) &&
		has(func(a buyers.Answer) bool { return a.Outcome != purchase.Sold && a.Outcome != purchase.SoldOut }) &&
		!has(func(a buyers.Answer) bool {
			return a.Outcome == purchase.Unknown && a.Status == 0 && !a.IsLost && !a.HungUp
		})
}
