package explore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/oversell/oversell/internal/audit"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/verdict"
)

// probePatience is how long a late buyer may take with nobody in its way.
const probePatience = 2 * time.Second

// judge says what a schedule proved, when its buyers are done. Holds is all
// that is no violation.
func (x *Explorer) judge(ctx context.Context, r *run, deadEnd bool) (verdict.Verdict, string, error) {
	if err := x.drain(ctx, r); err != nil {
		return "", "", err
	}
	b, err := x.read(ctx)
	if err != nil {
		return "", "", err
	}
	var answers []audit.Answer
	for _, buyer := range r.buyers {
		a := audit.Answer{Purchaser: buyerName(buyer.id), Outcome: purchase.OutcomeOf(buyer.err), ID: buyer.receipt.ID}
		if buyer.crashed { // whatever its code made of that
			a.Outcome = purchase.Unknown
		}
		if a.Outcome == purchase.Failed {
			return "", "", fmt.Errorf("%w: buyer %d: %w", ErrHarness, buyer.id, buyer.err)
		}
		answers = append(answers, a)
	}
	e := audit.Evidence{Books: b.Report, Demand: int64(len(answers)), MaxOverlap: 2}
	e.Lost, e.Untold = audit.Compare(answers, b.sales)
	e.Count(answers)
	v, why := audit.Judge(e)
	switch {
	case deadEnd && e.Busy > 0 && (v == verdict.Stalled || v == verdict.Holds || v == verdict.Inconclusive):
		who := "1 buyer waits"
		if e.Busy > 1 {
			who = fmt.Sprintf("%d buyers wait", e.Busy)
		}
		return verdict.Stalled, who + " for what nobody will do, and no lease is left that could run out", nil
	case v == verdict.Duplicated:
		return v, fmt.Sprintf("%d records are of a purchase that has one already", b.Duplicates), nil
	case v == verdict.Leaked && b.Drift == 0 && e.Untold == 0:
		return x.probe(ctx, v, why)
	case v == verdict.Inconclusive || v == verdict.Stalled:
		return verdict.Holds, why, nil // Stalled without a dead end: a buyer who gave up by itself
	}
	return v, why, nil
}

// probe lets a late buyer decide whether units that are left are for sale, or
// have leaked: somebody was told sold out, which may have been true then.
func (x *Explorer) probe(ctx context.Context, v verdict.Verdict, why string) (verdict.Verdict, string, error) {
	leases, err := x.leases(ctx)
	if err != nil {
		return "", "", err
	}
	for _, l := range leases {
		if err := l.server.admin.Del(ctx, l.key).Err(); err != nil {
			return "", "", err
		}
	}
	late := x.config.Strategy.New(x.deps(1))
	ctx, cancel := context.WithTimeoutCause(withBuyer(ctx, 1), probePatience, purchase.ErrBusy)
	defer cancel()
	_, err = late.Buy(ctx, purchase.Order{Product: x.config.Product, Purchaser: "late-buyer", Amount: 1})
	if c, ok := late.(io.Closer); ok {
		_ = c.Close()
	}
	if ended := x.awaitEnd(); ended != nil {
		return "", "", ended
	}
	switch {
	case err == nil:
		return verdict.Holds, "what was left could be sold", nil
	case errors.Is(err, purchase.ErrSoldOut):
		return v, why + "; so is every later one", nil
	case errors.Is(err, purchase.ErrBusy):
		return verdict.Stalled, why + "; a later one waits for ever", nil
	}
	return "", "", fmt.Errorf("%w: a late buyer: %w", ErrHarness, err)
}

// drain has the worker of a process that lives do what is left to do.
func (x *Explorer) drain(ctx context.Context, r *run) error {
	for _, b := range r.buyers {
		worker, ok := b.strategy.(interface {
			Drain(ctx context.Context, product string) error
		})
		if !ok {
			return nil
		}
		if b.crashed || !r.cut {
			continue
		}
		if err := worker.Drain(withBuyer(ctx, b.id), x.config.Product); err != nil {
			return fmt.Errorf("%w: the worker: %w", ErrHarness, err)
		}
		return nil
	}
	return nil
}
