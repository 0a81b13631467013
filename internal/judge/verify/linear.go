package verify

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/judge/linear"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
)

// buysIn returns the purchases (buys) of a product in a history, as the shops saw them, including those that
// never returned.
func buysIn(events []history.Event, product string) (buys []linear.Buy, stock int64) {
	events = slices.DeleteFunc(slices.Clone(events), func(e history.Event) bool { return e.Product != product })
	slices.SortStableFunc(events, func(a, b history.Event) int { return a.At.Compare(b.At) })
	open := map[string]int{}
	for _, e := range events {
		switch e.Kind {
		case history.Restocked: // stock and records start again
			buys, stock = nil, e.Amount
			clear(open)
		case history.Call:
			open[e.Purchaser] = len(buys)
			buys = append(buys, linear.Buy{Purchaser: e.Purchaser, Amount: e.Amount, Call: e.At, Outcome: purchase.Unknown})
		case history.Return:
			i, called := open[e.Purchaser]
			if !called {
				continue
			}
			delete(open, e.Purchaser)
			buys[i].Outcome, buys[i].Left = purchase.Outcome(e.Outcome), e.Left
			if buys[i].Outcome != purchase.Unknown {
				buys[i].Return = e.At
			}
		}
	}
	return buys, stock
}

// linear checks whether some order of the buys explains the answers in the history of a cell (one strategy
// under one condition). If none does, the verdict is nonlinearizable although stock and records are right. If
// there is a history file, linear draws a picture next to it. The picture shows the longest part of the
// history that some order explains.
func (c *Cell) linear(buys []linear.Buy, stock int64) error {
	counts := countsOf(c.Strategy)
	c.Linearizable = linear.Check(buys, stock, counts, linear.Timeout)
	if c.Linearizable == linear.No && (c.Verdict == verdict.Holds || c.Verdict == verdict.Inconclusive && c.Promise == verdict.Holds) {
		c.Verdict, c.Reason = verdict.Nonlinearizable, linear.NoOrder+"; "+c.Reason
	}
	if c.Linearizable == linear.Yes || c.Linearizable == "" || c.History == "" {
		return nil
	}
	c.Picture = strings.TrimSuffix(c.History, filepath.Ext(c.History)) + ".linear.html"
	return linear.Draw(buys, stock, counts, linear.Timeout, c.Picture)
}

// countsOf returns how exactly a strategy's answers reflect the stock. For a strategy that is not in the
// catalogue it returns linear.Exactly.
func countsOf(strategy string) linear.Counts {
	entry, _ := lockstrategy.ByName(strategy)
	return linear.CountsOf(entry.AdmitsFirst, entry.LeftLags, entry.WritesLater)
}
