package locktest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/load/pulse"
)

// A Verdict is the result of a check.
type Verdict string

// The verdicts. Only Breaks and Inconclusive fail a test.
const (
	Holds        Verdict = "holds"
	Breaks       Verdict = "breaks"
	NotClaimed   Verdict = "not claimed"  // the lock does not claim the property; Result.Seen describes the observed behaviour
	Unchecked    Verdict = "unchecked"    // the Subject lacks a function that the check needs
	Inconclusive Verdict = "inconclusive" // the machine was too busy, or there was no contention
)

// A Result is the verdict of one check.
type Result struct {
	Check   string
	Verdict Verdict
	Seen    Verdict            // the result of the experiment, regardless of the claims
	Why     string             // reason with the numbers, in one sentence
	Figures map[string]float64 // durations in seconds; nil for most checks
}

func (r Result) String() string {
	if r.Verdict == NotClaimed && r.Seen != NotClaimed {
		return fmt.Sprintf("%s: %s; seen: %s: %s", r.Check, r.Verdict, r.Seen, r.Why)
	}
	return fmt.Sprintf("%s: %s: %s", r.Check, r.Verdict, r.Why)
}

// A Check is one property of a lock.
type Check struct {
	Name string
	Must string // the property, in a sentence

	clients int                // number of clients that are connected before the check starts
	claimed func(Subject) bool // nil: every lock claims it
	try     func(context.Context, *trial) Result
}

// processes is the number of clients that contend for the lock in the checks Exclusion and HandOver.
const processes = 3

// Checks lists all checks in the order in which they are run.
func Checks() []Check {
	return []Check{
		{"Exclusion", "no two contenders, of whatever client, hold the lock at once", processes, nil, exclusion},
		{"HandOver", "every contender that waits gets the lock after the one before has unlocked", processes, nil, handOver},
		{"Fairness", "the first to ask gets the lock first, and no contender gets less than half of a fair share", 2, isFair, fairness},
		{"Renewal", "a holder that lives keeps the lock for three TTLs", 2, renews, renewal},
		{"LossSignal", "a holder whose lock is gone from the server learns of it within the bound", 2, signalsLoss, lossSignal},
		{"FrozenServer", "a holder whose server does not answer learns of it before another client can have the lock", 2, signalsLoss, frozenServer},
		{"ReleaseSafety", "a holder that lost the lease and unlocks late leaves the next holder's lock in place", 3, nil, releaseSafety},
		{"UnlockTwice", "a second Unlock leaves the next holder's lock in place", 3, nil, unlockTwice},
		{"CancelWaiting", "a waiter whose context ends returns at once with an error and leaves no gap in the line", 3, nil, cancelWaiting},
		{"CancelRace", "a context that ends during the hand-over leaves no lock without a holder", 3, nil, cancelRace},
		{"NoLeak", "a closed client leaves no goroutine", 0, nil, noLeak},
	}
}

func isFair(s Subject) bool      { return s.Fair }
func renews(s Subject) bool      { return s.Renews }
func signalsLoss(s Subject) bool { return s.SignalsLoss }

// Run runs all checks as subtests. A subtest fails if the verdict is Breaks or stays Inconclusive. It is
// skipped with the reason if the verdict is NotClaimed or Unchecked. No parallel test may run at the same
// time as Run: the check NoLeak would see its goroutines.
func Run(t *testing.T, s Subject) []Result {
	t.Helper()
	var results []Result
	for _, c := range Checks() {
		t.Run(c.Name, func(t *testing.T) {
			r := c.Examine(t.Context(), s)
			results = append(results, r)
			switch r.Verdict {
			case Holds:
				t.Log(r)
			case NotClaimed, Unchecked:
				t.Skip(r)
			default:
				t.Errorf("%s\nmust hold: %s", r, c.Must)
			}
		})
	}
	t.Log(Summary(s, results))
	return results
}

// Summary returns one line for each result.
func Summary(s Subject, results []Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "locktest: %s\n", s.Name)
	for _, r := range results {
		fmt.Fprintf(&b, "  %s\n", r)
	}
	return b.String()
}

const (
	// tryTimeout limits one attempt of a check. Only a broken lock or a stalled machine reaches it.
	tryTimeout = time.Minute
	// grace is added to every limit on a lock's time, for a round trip and a wake-up.
	grace = 250 * time.Millisecond
	// tries is the maximum number of attempts of a check if the machine is too busy.
	tries = 4
)

// Examine runs the check on a subject, with several attempts if the machine is busy. An attempt returns
// within about a minute even if the subject ignores its contexts. Goroutines of the subject may remain then.
func (c Check) Examine(ctx context.Context, s Subject) Result {
	var r Result
	for range tries {
		if r = c.once(ctx, s); r.Verdict != Inconclusive {
			break
		}
	}
	r.Check, r.Seen = c.Name, r.Verdict
	if c.claimed != nil && !c.claimed(s) {
		r.Verdict = NotClaimed
	}
	return r
}

func (c Check) once(ctx context.Context, s Subject) Result {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	done := make(chan Result, 1)
	go func() {
		tr := &trial{s: s, name: "locktest-" + c.Name + "-" + rand.Text()[:8], pulse: pulse.Start()}
		r := c.on(ctx, tr)
		if gap := tr.longest(); r.Verdict == Breaks && tr.s.TTL > 0 && gap > tr.s.TTL/3 {
			r = inconclusive("the machine stood still for %s of a TTL of %s; %s", round(gap), tr.s.TTL, r.Why)
		}
		if err := tr.close(); err != nil && r.Verdict == Holds {
			r = breaks("close: %v", err)
		}
		done <- r
	}()
	select {
	case r := <-done:
		return r
	case <-ctx.Done():
	}
	select {
	case r := <-done: // the check noticed the end of its context
		return r
	case <-time.After(10 * time.Second):
		return breaks("it did not return within 10 s of the end of its context")
	}
}

// A trial is one attempt of a check: its clients and its lock's name.
type trial struct {
	s       Subject
	name    string
	pulse   *pulse.Pulse
	clients []Client
}

// on connects the clients and makes one attempt of the check.
func (c Check) on(ctx context.Context, tr *trial) Result {
	for range c.clients {
		client, err := tr.s.Connect(ctx)
		if err != nil {
			return breaks("connect: %v", err)
		}
		tr.clients = append(tr.clients, client)
	}
	return c.try(ctx, tr)
}

// longest returns the longest time for which this process got no processor. The checks extend their limits on
// a lock's time by it, so that no verdict depends on how busy the machine is.
func (tr *trial) longest() time.Duration { return tr.pulse.Delays().Longest() }

// late returns how late an event may seem because this process got no processor. Both the event and its
// observation may be delayed.
func (tr *trial) late() time.Duration { return 2 * tr.longest() }

func (tr *trial) close() error {
	tr.pulse.Stop()
	var errs []error
	for _, c := range tr.clients {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// stillHeld reports whether a client holds the lock: a third client asks for the lock and must not get it
// within the duration `wait`.
func (tr *trial) stillHeld(ctx context.Context, third Client, wait time.Duration) (bool, error) {
	if tr.s.Remaining != nil {
		left, err := tr.s.Remaining(ctx, tr.name)
		if err != nil || left <= 0 {
			return false, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if lease := ask(ctx, third, tr.name); lease != nil {
		return false, lease.Unlock(context.WithoutCancel(ctx))
	}
	return true, nil
}

// ask asks for the lock until the client has it, or returns nil when ctx ends. If Lock gives up
// earlier, ask calls it again.
func ask(ctx context.Context, c Client, name string) Lease {
	for {
		lease, err := c.Lock(ctx, name)
		if err == nil {
			return lease
		}
		if sleep(ctx, time.Millisecond) != nil {
			return nil
		}
	}
}

// ifAble returns r, the result of a check in which the client c did not get another client's lock. The lock
// is free now, so c must get it. If c cannot get even a free lock, r proves nothing, and ifAble returns
// another result.
func (tr *trial) ifAble(ctx context.Context, c Client, r Result) Result {
	lease, err := c.Lock(ctx, tr.name)
	if err != nil {
		return inconclusive("the client that never got the lock did not get it when it was free either: %v", err)
	}
	if err := lease.Unlock(ctx); err != nil {
		return breaks("unlock: %v", err)
	}
	return r
}

// queued waits until n clients wait for the lock. If the server does not report its waiters, queued waits for
// the duration `spacing`.
func (tr *trial) queued(ctx context.Context, n int, spacing time.Duration) error {
	if tr.s.Waiting == nil {
		return sleep(ctx, spacing)
	}
	for {
		waiting, err := tr.s.Waiting(ctx, tr.name)
		if err != nil || waiting >= n {
			return err
		}
		if err := sleep(ctx, time.Millisecond); err != nil {
			return fmt.Errorf("%d wait, want %d: %w", waiting, n, err)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func holds(format string, args ...any) Result {
	return Result{Verdict: Holds, Why: fmt.Sprintf(format, args...)}
}

func breaks(format string, args ...any) Result {
	return Result{Verdict: Breaks, Why: fmt.Sprintf(format, args...)}
}

func unchecked(format string, args ...any) Result {
	return Result{Verdict: Unchecked, Why: fmt.Sprintf(format, args...)}
}

func inconclusive(format string, args ...any) Result {
	return Result{Verdict: Inconclusive, Why: fmt.Sprintf(format, args...)}
}
