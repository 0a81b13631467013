package own_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
)

// halted ends the search while one of its commands is on the way to the database or to its gate.
type halted struct {
	deps    lockstrategy.Deps
	halt    context.CancelCauseFunc
	running bool
	inside  *atomic.Int32 // calls of Buy that have not returned
}

// long takes SQLite some milliseconds, and far more with -race.
const long = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) SELECT MAX(i) FROM n`

func (s halted) Buy(ctx context.Context, _ purchase.Order) (purchase.Receipt, error) {
	s.inside.Add(1)
	defer s.inside.Add(-1)
	db := s.deps.DB.WithContext(context.WithoutCancel(ctx))
	if s.running {
		time.AfterFunc(5*time.Millisecond, func() { s.halt(errEnough) })
	} else {
		s.halt(errEnough)
	}
	for range 3 {
		if err := db.Exec(long).Error; err != nil {
			return purchase.Receipt{}, purchase.ErrBusy
		}
	}
	return purchase.Receipt{}, purchase.ErrSoldOut
}

// errEnough stands for Ctrl-C.
var errEnough = errors.New("enough")

// TestInterruptedInside: Ctrl-C may come at any time. Every buyer ends, and no connection is closed
// during a statement.
func TestInterruptedInside(t *testing.T) {
	e := enginetest.Embedded(t)
	for name, running := range map[string]bool{"between": false, "inside": true} {
		t.Run(name, func(t *testing.T) {
			for range 3 {
				ctx, halt := context.WithCancelCause(t.Context())
				var inside atomic.Int32
				c := exploretest.Config(e, lockstrategy.Entry{Name: "halted", New: func(d lockstrategy.Deps) purchase.Strategy {
					return halted{d, halt, running, &inside}
				}})
				if _, err := exploretest.Open(t, c).Search(ctx); !errors.Is(err, errEnough) {
					t.Fatal(err)
				}
				if n := inside.Load(); n != 0 {
					t.Fatalf("%d buyers were left behind", n)
				}
			}
		})
	}
}
