package lockstrategy_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

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
				if err := node.Signal(syscall.SIGCONT); err != nil {
					t.Error(err)
				}
			}
		},
	})
	row := e.DB.Begin() // keeps the buyer inside the section
	if err := row.Exec("SELECT id FROM product WHERE name = 'apple' FOR UPDATE").Error; err != nil {
		t.Fatal(err)
	}
	defer row.Rollback()
	bought := make(chan error, 1)
	go func() {
		_, err := shop.Buy(t.Context(), purchase.Order{Product: "apple", Purchaser: "ann", Amount: 1})
		bought <- err
	}()
	<-acquired
	if err := node.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := <-bought; !errors.Is(err, purchase.ErrLockLost) {
		t.Errorf("%v, want ErrLockLost", err)
	}
}
