package lockstrategy

import (
	"context"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/purchase"
)

// None runs the naive critical section (read the stock, check it, write it) without a lock.
//
//   - Summary: read, compute, write; no lock
//   - Guarantees: It guarantees nothing.
//   - Breaks when: two buyers buy at the same time
//   - How it breaks: Two buyers read the same stock, and each writes that stock minus one. The second write
//     overwrites the first, so one update is lost.
//   - Cost: One purchase is a read and a transaction of two writes. No buyer waits.
//   - Source: Berenson et al., "A Critique of ANSI SQL Isolation Levels", SIGMOD 1995, section 4.1 (P4, the lost
//     update)
type None struct {
	deps    Deps
	section purchase.Section
}

// NewNone returns the strategy. It needs only the database.
func NewNone(d Deps) *None {
	return &None{d, d.Section("none")}
}

// Buy implements purchase.Strategy.
func (s *None) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	ctx, _, cancel := s.deps.WithWait(ctx)
	defer cancel()
	return s.section.Sell(ctx, o, 0)
}

func noneEntry() Entry {
	return Entry{
		Name: "none", Family: noControl,
		New: func(d Deps) purchase.Strategy { return NewNone(d) },
		Traits: Traits{
			Aliases:  []string{"N", ""},
			CaughtBy: map[string]string{"Rush": wantSoldTwice, "TwoProcesses": wantSoldTwice, "MixedUnits": wantSoldTwice},
		},
	}.holdsExcept(promise.BreaksFrom(promise.Rush))
}
