// none: no control at all, the shop as every tutorial starts it.
//
// Guarantees:  nothing. Two buyers read the same stock and both write it minus one.
// Breaks when: two buyers are between the read and the write at once.
// Cost:        a read and a transaction of two writes; no waiting.
// Source:      the lost update, P4 in Berenson et al., "A Critique of ANSI SQL
//              Isolation Levels", SIGMOD 1995, section 4.1.

package lockstrategy

import (
	"context"

	"github.com/oversell/oversell/internal/purchase"
)

// None runs the naive section bare.
type None struct {
	deps    Deps
	section purchase.Section
}

// NewNone needs the database.
func NewNone(d Deps) *None {
	return &None{d, d.section("none")}
}

// Buy is purchase.Strategy.Buy.
func (s *None) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	ctx, _, cancel := s.deps.patience(ctx)
	defer cancel()
	return s.section.Sell(ctx, o, 0)
}
