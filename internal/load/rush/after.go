package rush

import (
	"context"
	"slices"

	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/purchase"
)

// after sends buyers that come alone, when the crowd is gone, and returns what they got. They
// show what a crowd cannot: whether a buyer is served that has no other in its way.
//
// Where some of the crowd gave up, one buyer asks at each process. It is served at once if they
// gave up because others were faster, and it waits, too, if a lock is kept.
//
// Where orders had several sizes, one buyer asks for all that is left. One for few units may
// have been refused rightly while one for many was under way; this one shows whether what is
// left can be sold or has leaked.
func (c Config) after(ctx context.Context, crowd []buyers.Answer) (late []buyers.Answer, _ error) {
	if slices.ContainsFunc(crowd, func(a buyers.Answer) bool { return a.Outcome == purchase.Busy }) && !isSilent(crowd) {
		var all []buyers.Buyer
		for range c.BaseURLs {
			all = append(all, buyers.Buyer{Name: crowdName() + "-late"})
		}
		late = c.at(c.BaseURLs).AtOnce(ctx, all)
	}
	hasOneSize := len(slices.Compact(slices.Clone(c.Sizes))) <= 1
	if hasOneSize || ctx.Err() != nil {
		return late, nil
	}
	audited, err := c.Auditor.Audit(ctx, c.Product)
	if err != nil || audited.Leftover <= 0 {
		return late, err
	}
	rest := buyers.Buyer{Name: crowdName() + "-rest", Units: audited.Leftover}
	return append(late, c.at(c.BaseURLs[:1]).One(ctx, rest)), nil
}
