package lockstrategy_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/lockstrategy/redisscript"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
	"github.com/oversell/oversell/internal/tier"
)

// TestBracesOnCluster: braces in a product's name do not affect where its keys are. Every strategy
// that uses a Redis Cluster sells and restocks such products.
func TestBracesOnCluster(t *testing.T) {
	tier.Soak(t, "needs a cluster of Redis")
	e := enginetest.Redis(t, topology.Cluster)
	products := []string{"a}b{c", "}", "{}", "{a}", "a{b", "}x{", "{{a}}", "plain"}
	for _, entry := range lockstrategy.All() {
		if !slices.Contains(entry.Needs, lockstrategy.NeedsRedis) {
			continue
		}
		t.Run(entry.Name, func(t *testing.T) {
			d := onengine.Deps(e)
			d.Settings.Wait = time.Minute
			strategy := entry.New(d)
			if c, ok := strategy.(io.Closer); ok {
				defer c.Close()
			}
			for _, name := range products {
				err := purchase.InLockingTx(t.Context(), e.DB, func(tx *gorm.DB) error {
					if err := product.Put(tx, name, 2); err != nil {
						return err
					}
					return purchase.Clear(tx, name)
				})
				require.NoError(t, err)
				expect.NoError(t, strategy.(purchase.Resetter).Reset(t.Context(), name), name, "reset")
				for _, buyer := range []string{"first", "second"} {
					expect.NoError(t, expect.ErrorOf(strategy.Buy(t.Context(), purchase.Order{Product: name, Purchaser: buyer, Amount: 1})), name, buyer, "buyer")
				}
			}
		})
	}
}

type failsOnce struct{ failed *atomic.Int64 }

func (failsOnce) DialHook(next redis.DialHook) redis.DialHook { return next }

func (failsOnce) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (f failsOnce) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		release := len(cmd.Args()) > 1 && slices.ContainsFunc(redisscript.Redislock(), func(d redisscript.Description) bool {
			return d.Role == redisscript.Release && d.SHA == cmd.Args()[1]
		})
		if release && f.failed.Add(1) == 1 {
			err := errors.New("the connection broke")
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

// TestGiveBackFails: no replica stores a grant, and the first attempt to release it fails. The
// product does not stay locked for the rest of the TTL.
func TestGiveBackFails(t *testing.T) {
	node := localservertest.Redis(t)
	client := redis.NewClient(&redis.Options{Addr: node.Addr, MaxRetries: -1})
	defer client.Close()
	var failed atomic.Int64
	client.AddHook(failsOnce{&failed})
	settings := lockstrategy.DefaultSettings()
	settings.LeaseTTL, settings.Wait, settings.Replicas = time.Hour, 100*time.Millisecond, 1
	lock := lockstrategy.NewRedisLocker(lockstrategy.Deps{Redis: client, Settings: settings, Now: time.Now})
	if _, err := lock.Lock(t.Context(), "apple"); err == nil || errors.Is(err, purchase.ErrBusy) || failed.Load() == 0 {
		t.Fatalf("%v, after %d releases; want that Redis failed", err, failed.Load())
	}
	require.Eventually(t, "the lock is released", func() bool { return client.DBSize(t.Context()).Val() == 0 })
}

// TestGiveBackTooLate: a grant that expires before its release is not an error.
func TestGiveBackTooLate(t *testing.T) {
	node := localservertest.Redis(t)
	client := redis.NewClient(&redis.Options{Addr: node.Addr, MaxRetries: -1})
	defer client.Close()
	settings := lockstrategy.DefaultSettings()
	settings.LeaseTTL, settings.Replicas = 5*time.Millisecond, 1 // WAIT takes 10 ms
	lock := lockstrategy.NewRedisLocker(lockstrategy.Deps{Redis: client, Settings: settings, Now: time.Now})
	ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, purchase.ErrBusy)
	defer cancel()
	expect.ErrorIs(t, expect.ErrorOf(lock.Lock(ctx, "apple")), purchase.ErrBusy)
}

// TestFencedAfterRedisForgot: a Redis that has lost its counter grants tokens that the database has
// seen before. One buyer is refused because of that; then sales go on.
func TestFencedAfterRedisForgot(t *testing.T) {
	enginetest.EachDatabase(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		e := open(t)
		entry, _ := lockstrategy.ByName("fenced")
		shop := entry.New(onengine.Deps(e))
		defer shop.(io.Closer).Close()
		buy := func() error {
			_, err := shop.Buy(t.Context(), purchase.Order{Product: "apple", Purchaser: "ann", Amount: 1})
			return err
		}
		for range 3 {
			require.NoError(t, buy())
		}
		require.NoError(t, e.Redis.FlushDB(t.Context()).Err())
		expect.ErrorIs(t, buy(), purchase.ErrLockLost, "with an old token")
		expect.NoError(t, buy(), "the next buyer")
	})
}

// TestWatchdogHungRedis: if Redis hangs, renewals included, the section ends within the TTL.
func TestWatchdogHungRedis(t *testing.T) {
	e := enginetest.Local(t)
	node := localservertest.Redis(t)
	client := redis.NewClient(&redis.Options{Addr: node.Addr, MaxRetries: -1, ReadTimeout: time.Minute}) // the client must not detect the hang
	defer client.Close()

	settings := lockstrategy.DefaultSettings()
	settings.Wait, settings.LeaseTTL = 30*time.Second, 2*time.Second
	acquired := make(chan struct{})
	shop := lockstrategy.NewWatchdog(lockstrategy.Deps{
		DB: e.DB, Redis: client, Settings: settings, Now: time.Now,
		Observe: func(_ context.Context, event lockstrategy.Event) {
			switch event.Kind {
			case lockstrategy.Acquired:
				close(acquired)
			case lockstrategy.Released: // the section has ended; now let the release through
				expect.NoError(t, node.Signal(syscall.SIGCONT))
			}
		},
	})
	row := e.DB.Begin() // keeps the buyer inside the section
	require.NoError(t, row.Exec("SELECT id FROM product WHERE name = 'apple' FOR UPDATE").Error)
	defer row.Rollback()
	bought := make(chan error, 1)
	go func() {
		_, err := shop.Buy(t.Context(), purchase.Order{Product: "apple", Purchaser: "ann", Amount: 1})
		bought <- err
	}()
	<-acquired
	require.NoError(t, node.Signal(syscall.SIGSTOP))
	expect.ErrorIs(t, <-bought, purchase.ErrLockLost)
}
