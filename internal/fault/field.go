package fault

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/testbed"
)

// A Field is the environment of an injection: a Testbed or a RunningRush. The fault stops a buyer of the first
// process while other buyers buy elsewhere.
type Field interface {
	setting() Setting

	// hold stops a buyer of the first process at a failpoint, until release or the end of the injection. It
	// returns how many buyers in this process have no answer yet.
	hold(ctx context.Context, at failpoint.Point) (inside int, err error)
	// release lets the stopped buyer go on.
	release() error

	// others lets other buyers buy while the holder is stopped. It returns after the first sales. Without sales, it
	// returns after the duration `longest`. In a running rush it takes at least the duration `shortest`.
	others(ctx context.Context, shortest, longest time.Duration)

	// process returns the process of the stopped buyer.
	process() Process
	// redis returns the Redis of the shops and the links of all shops to it, or nil if Redis is several servers.
	redis() (*redisServers, testbed.Links)

	// injected records in the history what the fault has done.
	injected(what string, args ...any)
	// afterwards schedules repair for the end of the injection. The last scheduled repair runs first.
	afterwards(repair func(ctx context.Context) error)
}

// A Setting contains the facts about a Field that a fault needs.
type Setting struct {
	Times
	Product string
	Write   failpoint.Point // the last failpoint before a write of the stopped buyer becomes visible
	Down    time.Duration   // time from the end of a process to the start of its successor

	InRush bool // the field is a RunningRush, not a Testbed
}

// A Process is a shop process that a fault can kill and stop.
type Process interface {
	Kill() error
	Ended() bool
	StartAgain(ctx context.Context) error
	Freeze() error
	Thaw() error
	// Answers reports whether the process answers within a duration.
	Answers(ctx context.Context, within time.Duration) bool
}

// repairs undo the damage of an injection.
type repairs struct{ list []func(context.Context) error }

func (r *repairs) afterwards(repair func(ctx context.Context) error) { r.list = append(r.list, repair) }

// repair runs the repairs, the last one first. After an error it continues with the next one.
func (r *repairs) repair(ctx context.Context) error {
	var errs []error
	for _, repair := range slices.Backward(r.list) {
		errs = append(errs, repair(ctx))
	}
	r.list = nil
	return errors.Join(errs...)
}

// each calls do for every element and joins the errors.
func each[E any](all []E, do func(E) error) error {
	var errs []error
	for _, e := range all {
		errs = append(errs, do(e))
	}
	return errors.Join(errs...)
}

// until polls a condition every few milliseconds. It returns false if the condition is still false after the
// time `within`. It stops at an error.
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
