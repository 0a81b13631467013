package rush

import (
	"context"
	"errors"
	"fmt"

	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/plural"
)

// smallPage is the page size with which a rush reads the history of our own shop. It is so small that the
// records of a burst fill several pages.
const smallPage = 9

// readHistory compares two lists: the shop's GET /purchase_history, read page by page, and `sales`, the
// records in its database. Only our own database has both lists. A buyer without an answer may be recorded
// meanwhile, so the history may show a record that is not in `sales`.
func (c Config) readHistory(ctx context.Context, r *Result, sales map[int64]audit.Sale) error {
	if r.Verdict.IsBreak() {
		return nil
	}
	shown, err := c.Shelf.sales(ctx, c.Product, smallPage)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, new(*TimeoutError)) || errors.Is(err, context.DeadlineExceeded):
		r.Verdict, r.Reason = verdict.Inconclusive, "the history was not read in time: "+err.Error()
		return nil
	case err != nil:
		r.Verdict, r.Reason = verdict.Failed, "the history cannot be read: "+err.Error()
		return nil
	}
	now, err := c.Auditor.Sales(ctx, c.Product)
	if err != nil {
		return fmt.Errorf("read the records after the history: %w", err)
	}
	if missing, extra := without(sales, shown), without(shown, now); missing+extra > 0 {
		r.Verdict, r.Reason = verdict.Failed, fmt.Sprintf("in pages of %d, the history shows %s, and the database has %d: %d are missing, %d are not in the database",
			smallPage, plural.Count(len(shown), "record"), len(now), missing, extra)
	}
	return nil
}

// without returns the number of records in `all` that are not in `those`.
func without(all, those map[int64]audit.Sale) (n int) {
	for id := range all {
		if _, has := those[id]; !has {
			n++
		}
	}
	return n
}
