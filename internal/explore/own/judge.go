package own

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"

	"github.com/oversell/oversell/internal/engine/sqlerror"
	"github.com/oversell/oversell/internal/explore/conduct"
	"github.com/oversell/oversell/internal/explore/gate"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/purchase"
)

type judgement struct {
	x *Runner
	r *run
}

// verdict returns the verdict of the schedule, with its reason. Holds means that the schedule contains no violation.
func (j judgement) verdict(ctx context.Context) (verdict.Verdict, string, error) {
	x, r := j.x, j.r
	if r.leftover.what == "" { // a worker could otherwise wait forever for a lock that a buyer left
		if err := j.finishWork(ctx); err != nil {
			return "", "", err
		}
	}
	state, err := x.stock.Read(ctx)
	if err != nil {
		return "", "", err
	}
	answers, err := r.answers()
	if err != nil {
		return "", "", err
	}
	if v, why := j.underOneKey(state.Records); v != "" {
		return v, why, nil
	}
	e := audit.Evidence{Sums: state.Sums, Demand: audit.Demand(answers), MaxOverlap: 2}
	e.Lost, e.Untold = audit.Compare(answers, state.Sales)
	e.Count(answers)
	v, why := audit.Judge(e)
	r.refuse()
	refused := slices.IndexFunc(r.buyers, func(b *buyer) bool { return b.refused })
	switch {
	case r.leftover.what != "" && state.Drift == 0 && (v == verdict.Stalled || v == verdict.Holds || v == verdict.Inconclusive || v == verdict.Leaked && e.Untold == 0):
		return verdict.LeakedLock, r.leftover.what, nil
	case r.deadEnd && e.Busy > 0 && (v == verdict.Stalled || v == verdict.Holds || v == verdict.Inconclusive):
		who := "1 buyer waits"
		if e.Busy > 1 {
			who = fmt.Sprintf("%d buyers wait", e.Busy)
		}
		return verdict.Stalled, who + " forever: no lease ends by itself", nil
	case v == verdict.Duplicated:
		return v, fmt.Sprintf("%d records belong to a purchase that already has a record", state.Duplicates), nil
	case v == verdict.Leaked && state.Drift == 0 && e.Untold == 0 && r.conductor.Happened()[schedule.Restock]:
		why = "after the restock, " + why // the restock put enough units on sale for each later buyer
	case v == verdict.Leaked && state.Drift == 0 && e.Untold == 0:
		v, why, err = j.askLater(ctx, v, why)
	case (v == verdict.Inconclusive || v == verdict.Stalled) && refused >= 0 && r.buyers[refused].order.Amount <= x.spec.Stock:
		return verdict.Stalled, fmt.Sprintf("buyer %d was told busy although no other buyer was under way", r.buyers[refused].id), nil
	case v == verdict.Inconclusive || v == verdict.Stalled:
		v = verdict.Holds // the run had no dead end, so a buyer gave up by itself: that is no violation
	}
	if who := j.cleansUp(); err == nil && v == verdict.Holds && who != "" {
		return j.keepsNothing(ctx, who, why)
	}
	return v, why, err
}

func (r *run) answers() (answers []audit.Answer, _ error) {
	for _, b := range r.buyers {
		if r.restocked.explains(b) {
			continue
		}
		a := audit.Answer{Purchaser: b.name, Units: b.order.Amount, Outcome: purchase.OutcomeOf(b.err), ID: b.receipt.ID}
		if b.crashed && !b.answered || b.gone && b.err != nil { // the buyer got no answer, even if Buy returned one
			a.Outcome = purchase.Unknown
		}
		if a.Outcome == purchase.Failed && !errors.Is(b.err, purchase.ErrKeyReused) {
			switch {
			case errors.Is(b.err, gate.ErrRaised): // the event `raise` caused this error, which is a violation only if the buyer has a record
			case sqlerror.Definite(b.err):
				a.Status = http.StatusInternalServerError // the shop answers a database error with status 500
			default:
				return nil, fmt.Errorf("%w: buyer %d: %w", schedule.ErrHarness, b.id, b.err)
			}
		}
		answers = append(answers, a)
	}
	return answers, nil
}

// underOneKey checks a schedule in which all purchases use one Idempotency-Key. It returns the violation, or "". The
// shop may sell at most one of the purchases, and may answer "key reused" only after that sale.
func (j judgement) underOneKey(records int64) (verdict.Verdict, string) {
	if !j.x.spec.OneKey {
		return "", ""
	}
	reused := slices.ContainsFunc(j.r.buyers, func(b *buyer) bool { return errors.Is(b.err, purchase.ErrKeyReused) })
	switch {
	case records > 1:
		return verdict.Duplicated, fmt.Sprintf("%d different orders under one Idempotency-Key were sold", records)
	case records == 0 && reused && len(j.r.restocked.cleared) == 0:
		return verdict.Leaked, "a buyer was told that the Idempotency-Key is used, but no order was sold under it"
	}
	return "", ""
}

// leastRefused returns the number of units in the smallest purchase that was refused as sold out.
func (all buyers) leastRefused() int64 {
	least := int64(math.MaxInt64)
	for _, b := range all {
		if errors.Is(b.err, purchase.ErrSoldOut) {
			least = min(least, b.order.Amount)
		}
	}
	return least
}

// askLater checks a schedule that refused a buyer as sold out, although units are left. The answer may have been right
// at that moment. If a late buyer cannot buy the units either, they have leaked. The late buyer buys in a separate run,
// so the result depends on no time-out.
func (j judgement) askLater(ctx context.Context, v verdict.Verdict, why string) (verdict.Verdict, string, error) {
	x := j.x
	leases, err := x.servers.leases(ctx, x.clock.Now())
	if err != nil {
		return "", "", err
	}
	for _, l := range leases {
		if err := l.End(ctx); err != nil {
			return "", "", err
		}
	}
	late, err := j.lateBuyer(ctx, j.r.buyers.leastRefused(), false)
	if err != nil {
		return "", "", err
	}
	switch {
	case late.err == nil:
		j.r.early = true
		return verdict.Holds, "what was left could be sold", nil
	case errors.Is(late.err, purchase.ErrSoldOut):
		return v, why + ", and every later buyer is told so, too", nil
	case errors.Is(late.err, purchase.ErrBusy), errors.Is(late.err, errCut):
		return verdict.Stalled, why + "; a later one waits for ever", nil
	}
	return "", "", fmt.Errorf("%w: a late buyer: %w", schedule.ErrHarness, late.err)
}

// lateBuyer runs a buyer that asks for units after all others are done. If `timeless` is true, no lease expires and no
// timer fires in this run.
func (j judgement) lateBuyer(ctx context.Context, units int64, timeless bool) (*buyer, error) {
	x := j.x
	r := x.start(ctx, []purchase.Order{{Product: x.spec.Product, Purchaser: "late-buyer", Amount: units}}, false)
	r.passing.stopped = timeless
	r.conductor = conduct.New(unjudged{r}, nil, nil, limits(x.spec))
	_, err := r.conductor.Run(ctx, func(p *schedule.Point) (string, error) { return p.FirstMove(), nil })
	return r.buyers[0], err
}

// cleansUp returns the name of the buyer that has hung up or raised an error, if no other event has happened; otherwise
// "". After these two events, the buyer's process still runs and can release its locks.
func (j judgement) cleansUp() string {
	happened := j.r.conductor.Happened()
	switch {
	case len(happened) != 1:
		return ""
	case happened[schedule.Disconnect]:
		return "the buyer that hung up"
	case happened[schedule.Raise]:
		return "the buyer whose code raised"
	}
	return ""
}

// keepsNothing lets a late buyer buy, to check whether an earlier buyer has left a lock. A lock that only its lease
// ends counts as left.
func (j judgement) keepsNothing(ctx context.Context, earlier, why string) (verdict.Verdict, string, error) {
	if j.r.passing.ranOut {
		return verdict.Stalled, "the lock of " + earlier + " stayed until its lease expired", nil
	}
	late, err := j.lateBuyer(ctx, 1, true)
	switch {
	case err != nil:
		return "", "", err
	case late.err == nil, errors.Is(late.err, purchase.ErrSoldOut):
		return verdict.Holds, why, nil
	case errors.Is(late.err, purchase.ErrBusy), errors.Is(late.err, errCut):
		return verdict.Stalled, earlier + " left a lock, and a later buyer waits for it", nil
	}
	return "", "", fmt.Errorf("%w: a late buyer: %w", schedule.ErrHarness, late.err)
}

// An unjudged is a run that ends without a verdict on its schedule.
type unjudged struct{ *run }

// End implements conduct.Subject.
func (r unjudged) End(ctx context.Context, e *schedule.Ended, err error) error {
	r.cut = true // assume that the strategy leaves code running
	e.Pruned = true
	return r.run.End(ctx, e, err)
}

// finishWork lets the background workers finish, except those of crashed processes.
func (j judgement) finishWork(ctx context.Context) error {
	for _, b := range j.r.buyers {
		worker, ok := b.strategy.(interface {
			Drain(ctx context.Context, product string) error
		})
		if !ok {
			return nil
		}
		if b.crashed || !j.r.cut {
			continue
		}
		if err := worker.Drain(gate.WithBuyer(ctx, b.id), j.x.spec.Product); err != nil {
			return fmt.Errorf("%w: the worker: %w", schedule.ErrHarness, err)
		}
		return nil
	}
	return nil
}
