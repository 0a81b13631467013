package rush

import (
	"context"
	"slices"

	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/purchase"
)

// after sends those who come when the crowd is gone, and returns what they got. They show
// what a crowd cannot: whether somebody is served whom nobody is in the way of.
func (c Config) after(ctx context.Context, crowd []buyers.Answer) ([]buyers.Answer, error) {
	late := c.late(ctx, crowd)
	rest, err := c.rest(ctx)
	return append(late, rest...), err
}

// late sends a buyer alone to each process after a crowd of which some gave up: where
// they gave up since others were faster it is served at once, and where a lock is kept it
// waits, too.
func (c Config) late(ctx context.Context, answers []buyers.Answer) []buyers.Answer {
	if !slices.ContainsFunc(answers, func(a buyers.Answer) bool { return a.Outcome == purchase.Busy }) {
		return nil
	}
	var late []buyers.Buyer
	for range c.BaseURLs {
		late = append(late, buyers.Buyer{Name: crowdName() + "-late"})
	}
	return c.at(c.BaseURLs).AtOnce(ctx, late)
}

// severalSizes: not each order is for as many units.
func (c Config) severalSizes() bool { return len(slices.Compact(slices.Clone(c.Sizes))) > 1 }

// rest sends a buyer alone for all that orders of several sizes have left. One of few units
// may have been refused rightly while one of many was under way; whether what is left can
// be sold, or has leaked, shows when nobody else is there.
func (c Config) rest(ctx context.Context) ([]buyers.Answer, error) {
	if !c.severalSizes() || ctx.Err() != nil {
		return nil, nil
	}
	audited, err := c.Auditor.Audit(ctx, c.Product)
	if err != nil || audited.Leftover <= 0 {
		return nil, err
	}
	return c.at(c.BaseURLs[:1]).AtOnce(ctx, []buyers.Buyer{{Name: crowdName() + "-rest", Units: audited.Leftover}}), nil
}
