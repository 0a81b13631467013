package verify

import (
	"context"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/trial"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/rush"
)

// restock tests a restock after a cell (strategy under one condition) that holds. A small burst at each shop
// must buy everything again. This exposes shops that remember that the product was sold out. The cell's
// history ends before the restock.
func (l *lane) restock(ctx context.Context, j job, cell *Cell) error {
	if cell.Verdict != verdict.Holds {
		return nil
	}
	urls := []string{l.pair.A.URL(), l.pair.B.URL()}
	config := rushConfig(urls, rush.Target{BaseURL: urls[0]}, l.servers.Auditor, j.strategy.Name, l.times)
	config.Product = productOf(j)
	if j.name == promise.TwoProcesses {
		config.Inside = trial.InsideOf(j.strategy.Name, l.database())
	}
	r, err := rush.Restocks(ctx, config, rush.Result{Verdict: verdict.Holds}, 1)
	if err != nil {
		return err
	}
	cell.restocked(r)
	return nil
}

// restocked adds the result of the burst after a restock to the cell.
func (c *Cell) restocked(r rush.Result) {
	if r.Verdict == verdict.Holds {
		c.Struck += "; restocked, it sold out again"
		return
	}
	c.playedBy(r)
	c.Verdict, c.Reason, c.Audited, c.Lost = r.Verdict, r.Reason, r.Audited, c.Lost+r.Lost
}
