package fault

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/testbed"
)

// A Field is what a fault is injected into: a cell of verify, which has few buyers and servers
// of its own (Testbed), or a rush that is under way on the engine's servers (RunningRush). In
// both, the fault holds a buyer of the first process, and other buyers buy elsewhere.
type Field interface {
	setting() Setting

	// hold stops a buyer of the first process at the point. It returns how many buyers that
	// process has not answered. The buyer goes on when the injection ends, at the latest.
	hold(ctx context.Context, at failpoint.Point) (inside int, err error)
	// release lets the held buyer go on.
	release() error
	// staysHeld waits until then and reports whether the held buyer was in its section all along.
	staysHeld(ctx context.Context, until time.Time) bool
	// awaitAnswer returns when the held buyer has its answer or has stopped waiting for one.
	awaitAnswer(ctx context.Context)

	// others lets other buyers buy beside the held one and returns how many units they were
	// sold. It returns when some were, no later than longest; where buyers come by themselves,
	// not before shortest.
	others(ctx context.Context, shortest, longest time.Duration) (sold int)

	// process is the one that the held buyer is in.
	process() Process
	// lockLinks are the links of that process to its lock servers.
	lockLinks() testbed.Links

	// injected notes in the history what the fault has done.
	injected(what string, args ...any)
	// afterwards runs repair at the end of the injection, the last one first.
	afterwards(repair func(ctx context.Context) error)
}

// A Setting is what a fault knows of its field.
type Setting struct {
	Times
	Product string
	Needs   []lockstrategy.Need // of the strategy that the buyers buy by
	Write   failpoint.Point     // the last one before a write of the held buyer is seen
	Down    time.Duration       // from the end of a process to the start of its successor
	Avoided time.Duration       // how long a client avoids a server that was silent, where that counts

	Coordinators map[lockstrategy.Need]string // the addresses of ZooKeeper and etcd, where they run

	InRush bool // the proof is one of a running rush
}

// A Process is a shop that a fault can end and stop.
type Process interface {
	Kill() error
	Ended() bool
	StartAgain(ctx context.Context) error
	Freeze() error
	Thaw() error
	// Answers reports whether the process answers within that time.
	Answers(ctx context.Context, within time.Duration) bool
}

// repairs put right what an injection broke.
type repairs struct{ list []func(context.Context) error }

func (r *repairs) afterwards(repair func(ctx context.Context) error) { r.list = append(r.list, repair) }

// repair runs the repairs, the last one first, whatever comes of each.
func (r *repairs) repair(ctx context.Context) error {
	var errs []error
	for _, repair := range slices.Backward(r.list) {
		errs = append(errs, repair(ctx))
	}
	r.list = nil
	return errors.Join(errs...)
}

// heal lets everything through the links again at the end of the injection.
func heal(f Field, links testbed.Links) {
	f.afterwards(func(ctx context.Context) error { links.Heal(ctx); return nil })
}

// until asks every few milliseconds whether it is so. It reports false after that time, and an
// error ends it.
func until(ctx context.Context, within time.Duration, is func() (bool, error)) (bool, error) {
	for deadline := time.Now().Add(within); ; pauseFor(ctx, 5*time.Millisecond) {
		if so, err := is(); so || err != nil || time.Now().After(deadline) || ctx.Err() != nil {
			return so, err
		}
	}
}

func pauseFor(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
