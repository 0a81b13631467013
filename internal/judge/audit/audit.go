// Package audit compares the records of sales with the units that left the stock, and decides the verdict of
// a run of the shop.
//
// The sums come from the database. The answers show which sales were acknowledged, which buyers were
// refused, and how long buyers waited.
package audit

import (
	"context"
	"database/sql"
	"fmt"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/plural"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// Sums are the state of one product's stock and records at one moment.
type Sums struct {
	Stocked    int64 `json:"stocked"`    // units that the last restock put on sale
	Leftover   int64 `json:"leftover"`   // units that can still be sold
	Records    int64 `json:"records"`    // rows of purchase_history
	UnitsSold  int64 `json:"units_sold"` // sum of the records' units
	Oversold   int64 `json:"oversold"`   // max(0, UnitsSold - Stocked)
	Drift      int64 `json:"drift"`      // UnitsSold + Leftover - Stocked; must be 0
	Duplicates int64 `json:"duplicates"` // records beyond the first with the same Idempotency-Key

	Diverged string `json:"diverged,omitempty"` // how the nodes of a cluster still differ in stock or records after a wait; "" if they agree
}

// Read reads the sums in one snapshot of the database, so each concurrent sale is in all numbers or in none. It
// returns product.ErrNotFound if the product does not exist. The query reads only the index purchase_history_audit.
//
// SQLite's driver ignores the requested isolation level, but its transactions read one snapshot anyway.
func Read(ctx context.Context, db *gorm.DB, name string) (Sums, error) {
	var r Sums
	snapshot := db.WithContext(ctx).Begin(&sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if snapshot.Error != nil {
		return Sums{}, purchase.DatabaseError(ctx, "audit", snapshot.Error)
	}
	defer snapshot.Rollback() // nothing was written
	p, err := product.WithParts(snapshot, name)
	if err != nil {
		return Sums{}, purchase.DatabaseError(ctx, "audit", err)
	}
	err = snapshot.Raw(`SELECT COUNT(*) AS records, COALESCE(SUM(amount), 0) AS units_sold,
		COUNT(idempotency_key) - COUNT(DISTINCT idempotency_key) AS duplicates
		FROM purchase_history WHERE product_name = ?`, name).Scan(&r).Error
	if err != nil {
		return Sums{}, purchase.DatabaseError(ctx, "audit", err)
	}
	r.Stocked, r.Leftover = p.Stocked, p.Amount
	return r.Computed(), nil
}

// Computed returns r with Oversold and Drift computed from its other fields.
func (r Sums) Computed() Sums {
	r.Oversold = max(0, r.UnitsSold-r.Stocked)
	r.Drift = r.UnitsSold + r.Leftover - r.Stocked
	return r
}

// Plus returns the sums over two products.
func (r Sums) Plus(other Sums) Sums {
	r.Stocked += other.Stocked
	r.Leftover += other.Leftover
	r.Records += other.Records
	r.UnitsSold += other.UnitsSold
	r.Duplicates += other.Duplicates
	r.Oversold += other.Oversold
	r.Drift += other.Drift
	return r
}

// Evidence contains the results of a run: stock, records, and the buyers' answers.
type Evidence struct {
	Sums       Sums  // stock and records at the end of the run
	Demand     int64 // units that all sent requests ask for together
	MaxOverlap int   // maximum number of concurrent buys
	Lost       int64 // acknowledged sales without a record
	Untold     int64 // records of refused buyers, and second records of one request
	Sold       int64 // buyers answered sold
	SoldOut    int64 // buyers answered sold out
	Denied     int64 // buyers answered sold out although enough units are left that no other buyer may have reserved
	Busy       int64 // buyers that gave up waiting
	Unheard    int64 // buyers whose answer was lost: each may have one record or none
	Unread     int64 // units ordered by Unheard buyers without a record: the shop may not have read their requests
	Doubtful   int64 // units ordered by buyers that were not answered in time: the shop may have reserved them
	Unanswered int64 // buyers told that the outcome is unknown or that a server is unavailable
	Failed     int64 // buyers with an error that no fault explains

	Progress  Progress // progress of the burst; zero if the answers have no times
	IsHealthy bool     // every server is known to run
	LetsWait  bool     // the shop lets each buyer wait for its maximum wait, and never answers busy before
}

// Judge returns the verdict on the run, and its reason in one sentence.
//
// An observed violation always counts. A run without one proves something only under three conditions: the
// buyers asked for more than the stock, were in flight at once, and were all served or refused. If one answer
// is lost, the others still count. Buyers that gave up are a violation only if no buyer was served for a long
// time (see Progress).
func Judge(e Evidence) (verdict.Verdict, string) {
	r := e.Sums
	switch {
	case e.Lost > 0:
		return verdict.Lost, plural.Count(e.Lost, "sale") + plural.Word(e.Lost, " was acknowledged and has no record", " were acknowledged and have no record")
	case r.Diverged != "":
		return verdict.Diverged, r.Diverged
	case r.Duplicates > 0:
		return verdict.Duplicated, plural.Count(r.Duplicates, "record") + plural.Word(r.Duplicates, " repeats", " repeat") + " an Idempotency-Key"
	case r.Oversold > 0:
		return verdict.Oversold, fmt.Sprintf("%s sold of %d stocked", plural.Count(r.UnitsSold, "unit"), r.Stocked)
	case r.Drift > 0:
		return verdict.Drifted, plural.Count(r.Drift, "update") + " of the stock" + plural.Word(r.Drift, " was", " were") + " lost"
	case r.Drift < 0 && r.Leftover < 0:
		return verdict.Leaked, fmt.Sprintf("the stock is %d: more was taken from it than the %s sold", r.Leftover, plural.Count(r.UnitsSold, "unit"))
	case r.Drift < 0:
		return verdict.Leaked, plural.Count(-r.Drift, "unit") + " left the stock and" + plural.Word(-r.Drift, " was", " were") + " not sold"
	case e.Untold > 0:
		return verdict.Leaked, plural.Count(e.Untold, "record") + plural.Word(e.Untold, " belongs to a buyer that was refused, or that has", " belong to buyers that were refused, or that have") + " two records for one sale"
	case r.Leftover > 0 && e.Denied > 0 && e.Doubtful >= r.Leftover && e.Progress.Starvation != "":
		return verdict.Inconclusive, fmt.Sprintf("%s: %s, and orders for %s were not answered in time, so the shop may have reserved them when it refused others",
			e.Progress.Starvation, r.left(), plural.Count(e.Doubtful, "unit"))
	case r.Leftover > 0 && e.Denied > 0:
		return verdict.Leaked, fmt.Sprintf("%s and %s told that it is sold out", r.left(), were(e.Denied))
	case e.Progress.Stuck() != "":
		return verdict.Stalled, e.Progress.Stuck() + e.gaveUp()
	case e.Progress.Early > 0 && (r.Leftover > 0 || e.LetsWait) && e.Demand >= r.Stocked:
		return verdict.Stalled, fmt.Sprintf("%s told busy before half of the wait of %s was over, and %s",
			were(e.Progress.Early), inWords(e.Progress.Wait), r.left())
	case e.Failed > 0:
		return verdict.Failed, were(e.Failed) + " answered with an error that no fault explains"
	case e.IsHealthy && e.Sold+e.SoldOut+e.Busy+e.Unheard == 0 && e.Demand > 0 && r.Leftover > 0 && e.Progress.Starvation == "":
		return verdict.Stalled, r.left() + " and no buyer was served or refused, although every server runs"
	case e.Progress.starving() != "":
		return verdict.Inconclusive, e.Progress.starving() + e.gaveUp()
	case e.Demand-e.Unread <= r.Stocked:
		return verdict.Inconclusive, fmt.Sprintf("%s asked for, %d stocked: the demand was not above the stock", plural.Count(e.Demand-e.Unread, "unit"), r.Stocked)
	case e.Unheard > 0 && e.Sold == 0:
		return verdict.Inconclusive, "no sale was acknowledged, and " + e.lostAnswers()
	case r.UnitsSold == 0 && e.SoldOut > 0: // the refusals are correct: each order was for more units than were left and not reserved
		return verdict.Inconclusive, fmt.Sprintf("nothing was sold: %s refused, and each asked for more units than were free of the %d that are left", were(e.SoldOut), r.Leftover)
	case e.MaxOverlap < 2:
		return verdict.Inconclusive, "no two buys were in flight at once"
	case e.Busy > 0 && (r.Leftover > 0 || e.Progress.Wait > 0 && !e.Progress.goesOn()):
		return verdict.Inconclusive, fmt.Sprintf("%s gave up with %s left; %s", plural.Count(e.Busy, "buyer"), plural.Count(r.Leftover, "unit"), e.Progress.slow())
	case e.Unanswered > 0 && r.Leftover == 0:
		return verdict.Inconclusive, were(e.Unanswered) + " neither served nor refused"
	case r.Leftover > 0 && e.Unanswered > 0:
		return verdict.Inconclusive, fmt.Sprintf("%s and %s got no answer", r.left(), plural.Count(e.Unanswered+e.Unheard, "buyer"))
	case r.Leftover > 0 && e.SoldOut == 0: // without refusals for large orders, nothing explains the units that are left
		return verdict.Inconclusive, r.left() + " and no buyer was refused" + e.unheard()
	}
	return verdict.Holds, fmt.Sprintf("%s sold of %d stocked, %d left", plural.Count(r.UnitsSold, "unit"), r.Stocked, r.Leftover) + e.unheard()
}

func (e Evidence) unheard() string {
	if e.Unheard == 0 {
		return ""
	}
	return "; " + e.lostAnswers() + ", and the records agree with the others"
}

func (e Evidence) lostAnswers() string {
	return plural.Count(e.Unheard, "answer") + plural.Word(e.Unheard, " was", " were") + " lost"
}

func (r Sums) left() string {
	return plural.Count(r.Leftover, "unit") + plural.Word(r.Leftover, " is", " are") + " left"
}

func (e Evidence) gaveUp() string {
	if e.Busy == 0 {
		return ""
	}
	return fmt.Sprintf("; %s gave up with %s left", plural.Count(e.Busy, "buyer"), plural.Count(e.Sums.Leftover, "unit"))
}
