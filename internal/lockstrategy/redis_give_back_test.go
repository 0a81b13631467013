package lockstrategy_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/redisscript"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

// failsOnce makes the first release of a lock fail.
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

// TestGiveBackFails: a grant that no replica has, and whose release fails, does not lock the
// product for the rest of the TTL.
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
	for deadline := time.Now().Add(time.Minute); client.DBSize(t.Context()).Val() > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the lock is still there")
		}
	}
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
	if _, err := lock.Lock(ctx, "apple"); !errors.Is(err, purchase.ErrBusy) {
		t.Errorf("%v, want that it was busy", err)
	}
}
