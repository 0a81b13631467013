// Package fault strikes a shop for real: processes are killed and stopped,
// servers restarted, connections cut. Each fault is one file and one function.
//
//	open: restock, a buyer at each shop
//	strike: a holder at A is stopped where it holds; the fault; next buyers at B; the holder goes on
//	finish: what was broken is mended, and a crowd buys what is left
//
// A fault proves that it struck, or returns ErrMissed: a cell where the holder
// did not hold, or the server did not forget, has shown nothing. The package
// does not judge; internal/verify does.
package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/promise"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/rush"
)

// ErrMissed: the fault did not strike. The error's text says why.
var ErrMissed = errors.New("the fault did not strike")

func missed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMissed, fmt.Sprintf(format, args...))
}

// A Fault is one way to strike.
type Fault struct {
	Name promise.Condition
	// Stock is what is on sale.
	Stock int64
	// Strike does it and says how it is known that it was done.
	Strike func(ctx context.Context, s *Scene) (proof string, err error)
}

// stock is enough for the buyers of a strike and for a crowd afterwards.
const stock = 24

// All returns the faults in the order of the columns. The two rushes are no
// faults of this package: nothing is struck there.
func All() []Fault {
	return []Fault{
		crash(), pause(), slowSection(), clientGone(), redisRestart(), redisFailover(),
		nodeRestart(), nodesDown(), clockJump(), latency(), partition(), dbKill(),
	}
}

// Facts are what is known of a scene when it is over.
type Facts struct {
	Proof   string        // that the fault struck
	Missed  string        // why it did not, "" when it did
	Answers []rush.Answer // of all buyers
	Last    []rush.Answer // those of them who came when all was mended
	Stalled string        // what nobody could do under the fault although it was promised, or ""
}

// Play opens the scene, strikes and finishes. An error is one of the harness.
func (s *Scene) Play(ctx context.Context, f Fault) (facts Facts, err error) {
	if err := s.open(ctx); err != nil {
		return Facts{}, err
	}
	facts.Proof, err = f.Strike(ctx, s)
	for _, undo := range slices.Backward(s.undo) {
		err = errors.Join(err, undo(ctx))
	}
	s.undo = nil
	var stalled *stalledError
	switch {
	case errors.As(err, &stalled):
		facts.Stalled = stalled.what
	case errors.Is(err, errNoHolder), errors.Is(err, ErrMissed):
		facts.Missed = err.Error()
	case err != nil:
		return Facts{}, err
	}
	if facts.Last, err = s.finish(ctx); err != nil {
		return Facts{}, err
	}
	facts.Answers = s.Answers()
	s.client.CloseIdleConnections()
	return facts, nil
}

// stalledError: under the fault nobody could buy.
type stalledError struct{ what string }

func (e *stalledError) Error() string { return e.what }

// finish lets a crowd buy what is left, from both shops, when they say that
// they are ready. A connection that broke under the fault may cost a buyer of
// the first crowd an error, so one with errors is followed by another.
func (s *Scene) finish(ctx context.Context) (last []rush.Answer, err error) {
	s.pending.Wait()
	for _, shop := range []*Shop{s.A, s.B} {
		if !s.ready(ctx, shop) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			return nil, fmt.Errorf("a shop was not ready a minute after the fault")
		}
	}
	for round := range 3 {
		books, err := s.Audit(ctx)
		if err != nil {
			return nil, fmt.Errorf("audit after the fault: %w", err)
		}
		last = s.crowd(ctx, fmt.Sprintf("crowd%d", round), int(max(2*books.Leftover, 10)), s.A, s.B)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(last, func(a rush.Answer) bool { return a.Outcome == purchase.Unknown || a.Outcome == purchase.Failed }) {
			break
		}
	}
	return last, nil
}

func (s *Scene) ready(ctx context.Context, shop *Shop) bool {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline) && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		if shop.get(ctx, "/readyz", 3*time.Second) {
			return true
		}
	}
	return false
}
