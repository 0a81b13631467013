// Package audit is the oracle: it compares the units in the records with the units that left the
// stock, and decides what a run proves.
//
// It reads the database. Answers serve only to find acknowledged sales without a record.
package audit

import (
	"context"
	"database/sql"
	"fmt"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// A Report is the state of one product's stock and records at one moment.
type Report struct {
	Stocked    int64 `json:"stocked"`    // units ever put on sale
	Leftover   int64 `json:"leftover"`   // units that can still be sold
	Records    int64 `json:"records"`    // rows of purchase_history
	UnitsSold  int64 `json:"units_sold"` // sum of the records' units
	Oversold   int64 `json:"oversold"`   // max(0, UnitsSold - Stocked)
	Drift      int64 `json:"drift"`      // UnitsSold + Leftover - Stocked; 0 is correct
	Duplicates int64 `json:"duplicates"` // records beyond the first with their Idempotency-Key

	Diverged string `json:"diverged,omitempty"` // how stock and records of the nodes differ, if they did for long
}

// Read reads the report in one snapshot of the database, so a concurrent sale is in all of its
// numbers or in none. It returns product.ErrNotFound if the product does not exist.
//
// SQLite's driver ignores the requested isolation level, but its transactions read one snapshot
// anyway.
//
// Read uses the index purchase_history_audit and no table row.
func Read(ctx context.Context, db *gorm.DB, name string) (Report, error) {
	var r Report
	snapshot := db.WithContext(ctx).Begin(&sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if snapshot.Error != nil {
		return Report{}, purchase.DatabaseError(ctx, "audit", snapshot.Error)
	}
	defer snapshot.Rollback() // nothing was written
	p, err := product.WithParts(snapshot, name)
	if err != nil {
		return Report{}, purchase.DatabaseError(ctx, "audit", err)
	}
	err = snapshot.Raw(`SELECT COUNT(*) AS records, COALESCE(SUM(amount), 0) AS units_sold,
		COUNT(idempotency_key) - COUNT(DISTINCT idempotency_key) AS duplicates
		FROM purchase_history WHERE product_name = ?`, name).Scan(&r).Error
	if err != nil {
		return Report{}, purchase.DatabaseError(ctx, "audit", err)
	}
	r.Stocked, r.Leftover = p.Stocked, p.Amount
	return r.Sums(), nil
}

// Sums returns r with Oversold and Drift computed from its counts.
func (r Report) Sums() Report {
	r.Oversold = max(0, r.UnitsSold-r.Stocked)
	r.Drift = r.UnitsSold + r.Leftover - r.Stocked
	return r
}

// Plus returns the sums over two products.
func (r Report) Plus(other Report) Report {
	r.Stocked += other.Stocked
	r.Leftover += other.Leftover
	r.Records += other.Records
	r.UnitsSold += other.UnitsSold
	r.Duplicates += other.Duplicates
	r.Oversold += other.Oversold
	r.Drift += other.Drift
	return r
}

// Evidence is the result of a run: stock, records, and the buyers' answers.
type Evidence struct {
	Report     Report // at the end of the run
	Demand     int64  // units that the sent requests ask for
	MaxOverlap int    // maximum number of concurrent buys
	Lost       int64  // acknowledged sales without a record
	Untold     int64  // records of refused buyers, and second records of one request
	Sold       int64  // buyers answered sold
	SoldOut    int64  // buyers answered sold out
	Denied     int64  // buyers answered sold out although the units that they asked for are left, and no other buyer may have reserved them
	Busy       int64  // buyers that gave up waiting
	Unheard    int64  // buyers whose answer was lost: each may have a record or none
	Unread     int64  // units ordered by buyers in Unheard without a record: the shop may not have read their requests
	Doubtful   int64  // units ordered by buyers that were not answered in time: the shop may have reserved them
	Unanswered int64  // buyers answered that the outcome is unknown or a server unavailable
	Failed     int64  // buyers with an error that no fault explains

	Progress Progress // of a burst; zero if the answers have no times
}

// Judge returns what the run proves, and why, in one sentence.
//
// An observed violation counts, however small the run. A run without one proves something only
// under three conditions: the buyers asked for more than the stock, were in flight at once, and
// were all served or refused. A lost answer does not affect the others. Buyers that gave up are a
// violation only if no sale took place meanwhile: see Progress.
func Judge(e Evidence) (verdict.Verdict, string) {
	r := e.Report
	switch {
	case e.Lost > 0:
		return verdict.Lost, fmt.Sprintf("%d sales were acknowledged and have no record", e.Lost)
	case r.Diverged != "":
		return verdict.Diverged, r.Diverged
	case r.Duplicates > 0:
		return verdict.Duplicated, fmt.Sprintf("%d records repeat an Idempotency-Key", r.Duplicates)
	case r.Oversold > 0:
		return verdict.Oversold, fmt.Sprintf("%d units sold of %d stocked", r.UnitsSold, r.Stocked)
	case r.Drift > 0:
		return verdict.Drifted, fmt.Sprintf("%d updates of the stock were lost", r.Drift)
	case r.Drift < 0 && r.Leftover < 0:
		return verdict.Leaked, fmt.Sprintf("the stock is %d: more was taken from it than the %d units that were sold", r.Leftover, r.UnitsSold)
	case r.Drift < 0:
		return verdict.Leaked, fmt.Sprintf("%d units left the stock and were not sold", -r.Drift)
	case e.Untold > 0:
		return verdict.Leaked, fmt.Sprintf("%d records belong to buyers that were refused, or that have two records for one sale", e.Untold)
	case r.Leftover > 0 && e.Denied > 0 && e.Doubtful >= r.Leftover && e.Progress.Starvation != "":
		return verdict.Inconclusive, fmt.Sprintf("%s: %d units are left, and orders for %d units were not answered in time, so the shop may have reserved them when it refused others",
			e.Progress.Starvation, r.Leftover, e.Doubtful)
	case r.Leftover > 0 && e.Denied > 0:
		return verdict.Leaked, fmt.Sprintf("%d units are left and %d buyers were told that it is sold out", r.Leftover, e.Denied)
	case e.Progress.Stuck() != "":
		return verdict.Stalled, e.Progress.Stuck() + e.gaveUp()
	case e.Progress.Early > 0 && r.Leftover > 0 && e.Demand >= r.Stocked:
		return verdict.Stalled, fmt.Sprintf("%s told busy before half of the wait of %s was over, and %d units are left",
			were(e.Progress.Early), inWords(e.Progress.Wait), r.Leftover)
	case e.Failed > 0:
		return verdict.Failed, were(int(e.Failed)) + " answered with an error, although no fault was injected"
	case e.Progress.starving() != "":
		return verdict.Inconclusive, e.Progress.starving() + e.gaveUp()
	case e.Demand-e.Unread <= r.Stocked:
		return verdict.Inconclusive, fmt.Sprintf("%d units asked for, %d stocked: the demand was not above the stock", e.Demand-e.Unread, r.Stocked)
	case e.Unheard > 0 && e.Sold == 0:
		return verdict.Inconclusive, fmt.Sprintf("no sale was acknowledged, and %d answers were lost", e.Unheard)
	case r.UnitsSold == 0 && e.SoldOut > 0: // each of them asked for more units than were free
		return verdict.Inconclusive, fmt.Sprintf("nothing was sold: %s refused, and each asked for more units than were free of the %d that are left", were(int(e.SoldOut)), r.Leftover)
	case e.MaxOverlap < 2:
		return verdict.Inconclusive, "no two buys were in flight at once"
	case e.Busy > 0 && (r.Leftover > 0 || e.Progress.Wait > 0 && !e.Progress.goesOn()):
		return verdict.Inconclusive, fmt.Sprintf("%s gave up with %d units left; %s", buyers(int(e.Busy)), r.Leftover, e.Progress.slow())
	case e.Unanswered > 0 && r.Leftover == 0:
		return verdict.Inconclusive, were(int(e.Unanswered)) + " neither served nor refused"
	case r.Leftover > 0 && (e.Unanswered > 0 || e.SoldOut == 0): // otherwise each refused buyer asked for more units than were free
		return verdict.Inconclusive, fmt.Sprintf("%d units are left and %d buyers got no answer", r.Leftover, e.Unanswered+e.Unheard)
	}
	return verdict.Holds, fmt.Sprintf("%d units sold of %d stocked, %d left", r.UnitsSold, r.Stocked, r.Leftover) + e.unheard()
}

// unheard says how many answers were lost, or returns "".
func (e Evidence) unheard() string {
	if e.Unheard == 0 {
		return ""
	}
	return fmt.Sprintf("; %d answers were lost, and the records agree with the others", e.Unheard)
}

// gaveUp says how many buyers gave up waiting.
func (e Evidence) gaveUp() string {
	if e.Busy == 0 {
		return ""
	}
	return fmt.Sprintf("; %s gave up with %d units left", buyers(int(e.Busy)), e.Report.Leftover)
}
