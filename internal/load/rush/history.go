package rush

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// smallPage is the size of the pages in which a rush reads the history of our own shop. The records of a burst
// fill several of them.
const smallPage = 9

// readHistory compares the shop's GET /purchase_history, page by page, with sales, the records in its
// database. A service that is audited over HTTP has no other list.
func (c Config) readHistory(ctx context.Context, r *Result, sales map[int64]audit.Sale) error {
	if _, own := c.Auditor.(Database); !own || r.Verdict.IsBreak() {
		return nil
	}
	shown, err := c.Shelf.sales(ctx, c.Product, smallPage)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	was, is := slices.Sorted(maps.Keys(sales)), slices.Sorted(maps.Keys(shown))
	switch {
	case err != nil:
		r.Verdict, r.Reason = verdict.Failed, "the history cannot be read: "+err.Error()
	case !slices.Equal(was, is):
		r.Verdict, r.Reason = verdict.Failed, fmt.Sprintf("in pages of %d, the history shows %s, and the database has %d", smallPage, audit.Count(len(is), "record"), len(was))
	}
	return nil
}
