package own

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// A patience bounds the wait for code of the strategy to end. It expires only after many looks, so a
// slow machine alone does not end it.
type patience struct {
	until time.Time
	looks int
}

const (
	leastLooks = 500
	lookEvery  = 5 * time.Millisecond

	// maxSilence bounds the time that a buyer computes between two commands. maxEnding bounds the
	// time that code of the strategy takes to end after its contexts. Every strategy needs far less.
	// Together, with a second run, they are below half a minute.
	maxSilence = 15 * time.Second
	maxEnding  = 5 * time.Second
	maxAgain   = 2 * time.Second // for a strategy that has exceeded one of them before
)

func (x *Runner) patience(long time.Duration) patience {
	if x.stuck {
		long = maxAgain
	}
	return patience{until: time.Now().Add(long)}
}

func (p *patience) isOver() bool {
	p.looks++
	return p.looks > leastLooks && time.Now().After(p.until)
}

// A stuckError reports code of the strategy that still runs after the schedule, although every command
// is answered and every context has ended. The strategy is to blame, see isBreak.
type stuckError struct{ what, where string }

func (e stuckError) Error() string { return e.what + ": " + cmp.Or(e.where, "it is not known where") }

// Unwrap returns ErrHarness: if the strategy is not to blame, the run proves nothing.
func (e stuckError) Unwrap() error { return schedule.ErrHarness }

// errSilent reports a buyer that computes for longer than maxSilence.
var errSilent = fmt.Errorf("%w: a buyer sends no command and does not wait for another one", schedule.ErrHarness)

// isBreak reports whether the strategy is to blame for code that still runs after the schedule. It is
// not if a process crashed or the search cut the schedule short.
func (r *run) isBreak(ctx context.Context, e *schedule.Ended, err error) bool {
	isWhole := err == nil && !e.Pruned && !e.Cut || errors.Is(err, errSilent)
	return isWhole && ctx.Err() == nil && !slices.ContainsFunc(r.buyers, func(b *buyer) bool { return b.crashed })
}

// awaitEnd waits until no goroutine of a strategy is left, since its commands would reach the next
// run. The error is a stuckError.
func (x *Runner) awaitEnd() error {
	for p := x.patience(maxEnding); !x.rest.Ended(); time.Sleep(lookEvery / 100) {
		if !p.isOver() {
			continue
		}
		if where := x.rest.Unended(); where != "" {
			return stuckError{"every Buy has returned, and a goroutine of the strategy does not end", where}
		}
	}
	return nil
}

// endStuck judges a schedule after which code of the strategy still runs. No schedule can follow it.
func (r *run) endStuck(ctx context.Context, e *schedule.Ended, stuck stuckError) error {
	r.x.stuck = true
	r.x.attach(nil)
	e.Pruned, e.Cut, e.Final = false, false, true
	e.Verdict, e.Why = verdict.Stalled, stuck.Error()
	e.Steps, e.Outcomes = r.notes.Steps, r.buyers.outcomes()
	return r.reseat(ctx)
}

// leftover describes the locks and transactions on idle connections of buyers, once every Buy has
// returned; "" if there are none.
func (r *run) leftover() string {
	var whys []string
	for _, b := range r.buyers {
		if held := b.holds(); len(held) > 0 {
			whys = append(whys, fmt.Sprintf("buyer %d is answered, and its idle connection still has %s", b.id, strings.Join(held, ", ")))
		}
	}
	return strings.Join(whys, "; ")
}

// holds lists the transactions and the named lock on the buyer's idle connections. It looks several
// times, since database/sql rolls back concurrently when the buyer's context ends.
func (b *buyer) holds() (held []string) {
	if b.crashed {
		return nil
	}
	for tries := 0; tries < 40; tries++ {
		held = held[:0]
		for _, c := range b.seat.connector.Open(b.id) {
			if what := c.Holds(); what != "" && c.Alive() {
				held = append(held, what)
			}
		}
		if len(held) == 0 {
			break
		}
		runtime.Gosched()
		time.Sleep(lookEvery)
	}
	if b.named {
		held = append(held, "a named lock ("+b.namedBy+")")
	}
	slices.Sort(held)
	return held
}

// clean gives the buyers new connections if the schedule left a lock or a transaction on the old ones.
func (r *run) clean(ctx context.Context) error {
	if r.left == "" {
		return nil
	}
	return r.reseat(ctx)
}

// reseat ends the buyers' connections and opens others.
func (r *run) reseat(ctx context.Context) (err error) {
	ctx = context.WithoutCancel(ctx)
	for _, b := range r.buyers {
		err = errors.Join(err, r.x.kill(ctx, b.id))
	}
	for i, s := range r.x.seats {
		owner := i + 1
		if r.x.spec.Shared {
			owner = 0
		}
		if pool, bad := s.db.DB(); bad == nil {
			_ = pool.Close() // its connections were ended
		}
		fresh, bad := r.x.open(owner)
		if err = errors.Join(err, bad); err != nil {
			return err
		}
		_ = s.close()
		r.x.seats[i] = fresh
	}
	return err
}
