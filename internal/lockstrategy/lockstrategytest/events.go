package lockstrategytest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
)

// events records the lock events that instances report. It can also stop a buyer: a strategy that
// reports an event waits for its observer. A stopped buyer has its lock and has not read the stock.
type events struct {
	seen chan lockstrategy.Event

	mu   sync.Mutex
	held map[string]chan struct{} // by purchaser; closed when the buyer may continue
}

func newEvents() *events {
	return &events{seen: make(chan lockstrategy.Event, 64), held: map[string]chan struct{}{}}
}

func (e *events) observe(_ context.Context, event lockstrategy.Event) {
	e.seen <- event
	if event.Kind != lockstrategy.Acquired {
		return
	}
	e.mu.Lock()
	gate := e.held[event.Purchaser]
	e.mu.Unlock()
	if gate != nil {
		<-gate
	}
}

// hold stops the purchaser when it acquires the lock, until the test calls `letGo` or ends. The test may
// call `letGo` twice.
func (e *events) hold(tb testing.TB, purchaser string) (letGo func()) {
	gate := make(chan struct{})
	e.mu.Lock()
	defer e.mu.Unlock()
	e.held[purchaser] = gate
	letGo = sync.OnceFunc(func() { close(gate) })
	tb.Cleanup(letGo)
	return letGo
}

func (e *events) expect(tb testing.TB, kind lockstrategy.EventKind, purchaser string) {
	tb.Helper()
	deadline := time.After(stepTimeout)
	for {
		select {
		case event := <-e.seen:
			if event.Kind == kind && event.Purchaser == purchaser {
				return
			}
		case <-deadline:
			tb.Fatalf("%s: no event %q within %s", purchaser, kind, stepTimeout)
		}
	}
}

func (e *events) had(kind lockstrategy.EventKind) bool {
	for {
		select {
		case event := <-e.seen:
			if event.Kind == kind {
				return true
			}
		default:
			return false
		}
	}
}

// cameIn reports whether buyer-3, which the test stops, got the lock. If it did not, its Buy must return busy.
func (e *events) cameIn(tb testing.TB, returned <-chan error) bool {
	tb.Helper()
	deadline := time.After(stepTimeout)
	for {
		select {
		case event := <-e.seen:
			if event.Kind == lockstrategy.Acquired && event.Purchaser == "buyer-3" {
				return true
			}
		case err := <-returned:
			expect.ErrorIs(tb, err, purchase.ErrBusy, "the third buyer")
			return false
		case <-deadline:
			tb.Fatalf("the third buyer: nothing within %s", stepTimeout)
		}
	}
}

func receive(tb testing.TB, answer <-chan error, buyer string) error {
	tb.Helper()
	select {
	case err := <-answer:
		return err
	case <-time.After(stepTimeout):
		tb.Fatalf("%s did not come back within %s", buyer, stepTimeout)
		return nil
	}
}
