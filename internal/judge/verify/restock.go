package verify

import (
	"context"

	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/rush"
)

// restock ends a cell that holds: the product is restocked, and a small crowd at each
// of the shops must buy all of it again. What they remember of the first sale shows
// here. The history of the cell ends before it.
func (l *lane) restock(ctx context.Context, j job, cell *Cell) error {
	if cell.Verdict != verdict.Holds {
		return nil
	}
	urls := []string{l.pair.A.URL(), l.pair.B.URL()}
	config := RushConfig(urls, rush.Target{BaseURL: urls[0]}, l.servers.Auditor, j.strategy.Name, l.times)
	config.Product = productOf(j)
	r, err := rush.Restocks(ctx, config, rush.Result{Verdict: verdict.Holds}, 1)
	if err != nil {
		return err
	}
	cell.restocked(r)
	return nil
}

// restocked takes what a crowd has shown after a restock, if it has shown a break.
func (c *Cell) restocked(r rush.Result) {
	if r.Verdict == verdict.Holds {
		c.Struck += "; restocked, it sold out again"
		return
	}
	c.Verdict, c.Reason, c.Audited, c.Lost = r.Verdict, r.Reason, r.Audited, c.Lost+r.Lost
}
