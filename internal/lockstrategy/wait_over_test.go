package lockstrategy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
)

// steps counts down Redis commands and SQL statements, each before it is sent. At zero it calls the
// function over.
type steps struct {
	mu   sync.Mutex
	left int
	over func()
}

func (s *steps) from(left int, over func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left, s.over = left, over
}

func (s *steps) step() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left--; s.left == 0 {
		s.over()
	}
}

func (s *steps) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *steps) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		s.step()
		return next(ctx, cmd)
	}
}

func (s *steps) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		s.step()
		return next(ctx, cmds)
	}
}

func (s *steps) onStatements(db *gorm.DB) error {
	step := func(*gorm.DB) { s.step() }
	c := db.Callback()
	return errors.Join(
		c.Query().Before("*").Register("test:step", step), c.Create().Before("*").Register("test:step", step),
		c.Update().Before("*").Register("test:step", step), c.Delete().Before("*").Register("test:step", step),
		c.Row().Before("*").Register("test:step", step), c.Raw().Before("*").Register("test:step", step),
	)
}

// TestWaitOverAtAnyStep ends a buyer's wait at its first command to Redis or the database, at its
// second, and so on. The servers are up, so no buyer may be told that a server is down.
func TestWaitOverAtAnyStep(t *testing.T) {
	t.Parallel()
	for _, entry := range lockstrategy.All() {
		t.Run(entry.Name, func(t *testing.T) {
			e := enginetest.Embedded(t)
			deps := onengine.Deps(e)
			if why := entry.Missing(deps); why != "" {
				t.Skip(why)
			}
			s := &steps{}
			require.NoError(t, s.onStatements(e.DB))
			for _, client := range append(deps.Redlock, deps.Redis) {
				client.AddHook(s)
			}
			shop := entry.New(deps)
			if c, ok := shop.(io.Closer); ok {
				defer c.Close()
			}
			for k, reached := 1, true; reached; k++ {
				name := fmt.Sprint("apple-", k)
				mustRestock(t, e, name, 5)
				reached = waitOverAt(t, s, k, shop, purchase.Order{Product: name, Purchaser: "ann", Amount: 1})
			}
		})
	}
}

// waitOverAt reports whether the buyer reached step k.
func waitOverAt(t *testing.T, s *steps, k int, shop purchase.Strategy, o purchase.Order) bool {
	t.Helper()
	ctx, over := context.WithCancelCause(t.Context())
	defer over(nil)
	s.from(k, func() { over(purchase.ErrBusy) })
	_, err := shop.Buy(ctx, o)
	switch outcome := purchase.OutcomeOf(err); outcome {
	case purchase.Sold, purchase.Busy, purchase.Unknown:
	default:
		t.Errorf("at step %d: %s: %v", k, outcome, err)
	}
	return ctx.Err() != nil
}
