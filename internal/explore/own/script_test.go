package own_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/redisscript"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
	"github.com/oversell/oversell/internal/tier"
)

type scripted struct{ deps lockstrategy.Deps }

var increment = redis.NewScript("-- Counts.\nreturn redis.call('incr', KEYS[1])")

func (s scripted) Buy(ctx context.Context, _ purchase.Order) (purchase.Receipt, error) {
	if err := increment.Run(ctx, s.deps.Redis, []string{"test:counter"}).Err(); err != nil {
		return purchase.Receipt{}, purchase.ErrBusy // the strategy hides the error from the explorer
	}
	return purchase.Receipt{}, purchase.ErrBusy
}

// TestScriptNotDescribed: the explorer does not guess the effect of a script from its text. It
// refuses a script without a description, and names it.
func TestScriptNotDescribed(t *testing.T) {
	e := enginetest.Embedded(t)
	entry := lockstrategy.Entry{
		Name: "scripted", Needs: []lockstrategy.Need{lockstrategy.NeedsRedis},
		New: func(d lockstrategy.Deps) purchase.Strategy { return scripted{d} },
	}
	_, err := exploretest.Open(t, exploretest.Config(e, entry)).Search(t.Context())
	if !errors.Is(err, explore.ErrHarness) || !strings.Contains(err.Error(), increment.Hash()) || !strings.Contains(err.Error(), "Entry.Scripts") {
		t.Errorf("got %v, want a harness error that names the script and says where to describe it", err)
	}
	entry.Scripts = []redisscript.Description{{SHA: increment.Hash(), Name: "count", Role: redisscript.Change}}
	result, err := exploretest.Open(t, exploretest.Config(e, entry)).Search(t.Context())
	if err != nil || !result.Complete {
		t.Errorf("described: complete %v, %v", result.Complete, err)
	}
}

// TestPoolerRefused: the explorer refuses to run behind a pooler, since it could end sessions of other
// users.
func TestPoolerRefused(t *testing.T) {
	tier.Soak(t, "needs PgBouncer")
	server := localservertest.Postgres(t)
	pooler, err := server.Pooler()
	require.NoError(t, err)
	e, err := engine.Open(t.Context(), engine.Config{
		DB: strings.Replace(server.URL(), server.Address(), pooler.Address(), 1), Wait: enginetest.Wait, Conns: 4,
	})
	require.NoError(t, err)
	defer e.Close()
	x, err := explore.New(t.Context(), exploretest.Config(e, exploretest.Entry(t, "transaction")))
	if err == nil {
		defer x.Close()
		_, err = x.Search(t.Context())
	}
	if err == nil || !strings.Contains(err.Error(), "this is a connection pooler, which hides the connection that sends a command: give the explorer the database's own address") {
		t.Errorf("%v", err)
	}
}

// halted ends the search while one of its commands is on the way to the database or to its gate.
type halted struct {
	deps    lockstrategy.Deps
	halt    context.CancelCauseFunc
	running bool
	inside  *atomic.Int32 // calls of Buy that have not returned
}

// long is a query that takes SQLite some milliseconds, and far longer with -race.
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
