package locktest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/tier"
	"github.com/oversell/oversell/locktest"
)

// TTLs of the locks in memory: for tests that wait until a lease ends, for a test that must notice such a
// wait, and for tests in which no lease may end.
const (
	ttl    = 1200 * time.Millisecond
	middle = 3 * time.Second
	long   = time.Hour
)

// TestSoundLock is the positive control: a sound lock passes every check.
func TestSoundLock(t *testing.T) {
	tier.Test(t, "the checks wait for leases")
	results := locktest.Run(t, newMemory(ttl, none).subject())
	expect.Equal(t, len(results), len(locktest.Checks()), "results")
	for _, r := range results {
		expect.Equal(t, r.Verdict, locktest.Holds, r)
	}
}

func examine(t *testing.T, check string, s locktest.Subject) locktest.Result {
	t.Helper()
	i := slices.IndexFunc(locktest.Checks(), func(c locktest.Check) bool { return c.Name == check })
	if i < 0 {
		t.Fatalf("no check %q", check)
	}
	return locktest.Checks()[i].Examine(t.Context(), s)
}

// TestBrokenLocksAreCaught are the negative controls: each check finds the lock with the matching flaw.
func TestBrokenLocksAreCaught(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flaw  flaw
		check string
		ttl   time.Duration
		why   string // part of the reason
	}{
		{noExclusion, "Exclusion", long, "holders at once"},
		{localOnly, "Exclusion", long, "holders at once"},
		{lastFirst, "Fairness", long, "had it [7 6"},
		{favourite, "Fairness", long, "had it [0 2 4 6 1 3 5 7]"},
		{neverRenews, "Renewal", ttl, "the holder had not unlocked"},
		{earlySignal, "Renewal", ttl, "the holder was told"},
		{neverSignals, "LossSignal", ttl, "was not told"},
		{neverSignals, "FrozenServer", ttl, "was not told"},
		{blindToServer, "FrozenServer", ttl, "was not told"},
		{blindRelease, "ReleaseSafety", long, "freed the lock of the next holder"},
		{blindRelease, "UnlockTwice", long, "freed the lock of the next holder"},
		{noExclusion, "ReleaseSafety", long, "freed the lock of the next holder"},
		{deaf, "CancelWaiting", long, "still waits after 5s"},
		{orphan, "CancelRace", middle, "left without a holder"},
	} {
		t.Run(c.check+"/"+strings.ReplaceAll(string(c.flaw), " ", "-"), func(t *testing.T) {
			t.Parallel()
			r := examine(t, c.check, newMemory(c.ttl, c.flaw).subject())
			if r.Verdict != locktest.Breaks || !strings.Contains(r.Why, c.why) {
				t.Errorf("%s; want %s for: %s", r, locktest.Breaks, c.why)
			}
			t.Log(r)
		})
	}
}

// TestLeakIsCaught is the negative control of NoLeak, which counts the goroutines of the whole process,
// so the test runs alone.
func TestLeakIsCaught(t *testing.T) {
	tier.Test(t, "the check waits for leases")
	if r := examine(t, "NoLeak", newMemory(long, leaky).subject()); r.Verdict != locktest.Breaks || !strings.Contains(r.Why, "memoryClient") {
		t.Errorf("%s; want %s for: memoryClient", r, locktest.Breaks)
	}
}

// TestForgottenWaiter: if a waiter never gets the lock, HandOver ends at its deadline. Exclusion does
// not report two holders at once.
func TestForgottenWaiter(t *testing.T) {
	tier.Test(t, "the checks wait for their deadlines")
	t.Parallel()
	for _, c := range locktest.Checks() {
		var want locktest.Verdict
		var why string
		switch c.Name {
		case "HandOver":
			want, why = locktest.Breaks, "waiters got the lock"
		case "Exclusion":
			want, why = locktest.Inconclusive, "grants, one at a time"
		default:
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if r := c.Examine(ctx, newMemory(long, forgetsWaiter).subject()); r.Verdict != want || !strings.Contains(r.Why, why) {
			t.Errorf("%s; want %s: %s", r, want, why)
		}
	}
}

// TestUnclaimed: a check also tries a property that the lock does not claim. The lock then does not
// fail the check.
func TestUnclaimed(t *testing.T) {
	tier.Test(t, "waits for leases")
	t.Parallel()
	humble := newMemory(long, lastFirst).subject()
	humble.Fair = false
	if r := examine(t, "Fairness", humble); r.Verdict != locktest.NotClaimed || r.Seen != locktest.Breaks {
		t.Errorf("an unfair lock that claims nothing: %s", r)
	}
	modest := newMemory(ttl, none).subject()
	modest.Renews = false
	if r := examine(t, "Renewal", modest); r.Verdict != locktest.NotClaimed || r.Seen != locktest.Holds {
		t.Errorf("a lock that renews and does not say so: %s", r)
	}
}

type unable struct{ locktest.Client }

func (unable) Lock(context.Context, string) (locktest.Lease, error) {
	return nil, errors.New("connection refused")
}

// TestUnableToAsk: if a client can never lock, its failure does not prove that another client holds the
// lock.
func TestUnableToAsk(t *testing.T) {
	tier.Test(t, "waits for leases")
	t.Parallel()
	for check, asker := range map[string]int{"Renewal": 2, "ReleaseSafety": 3, "UnlockTwice": 3} {
		t.Run(check, func(t *testing.T) {
			t.Parallel()
			s := newMemory(ttl, none).subject()
			connect, clients := s.Connect, 0
			s.Connect = func(ctx context.Context) (locktest.Client, error) {
				c, err := connect(ctx)
				if clients++; clients%asker == 0 { // the last one of each try
					c = unable{c}
				}
				return c, err
			}
			if r := examine(t, check, s); r.Verdict != locktest.Inconclusive || !strings.Contains(r.Why, "connection refused") {
				t.Errorf("%s; want inconclusive: connection refused", r)
			}
		})
	}
}

// TestWithoutHooks: a check that needs a missing hook is unchecked. The other checks run without it.
func TestWithoutHooks(t *testing.T) {
	t.Parallel()
	for check, want := range map[string]locktest.Verdict{
		"LossSignal": locktest.Unchecked, "FrozenServer": locktest.Unchecked, "ReleaseSafety": locktest.Unchecked,
		"Renewal": locktest.Holds, "UnlockTwice": locktest.Holds, "CancelWaiting": locktest.Holds,
	} {
		t.Run(check, func(t *testing.T) {
			t.Parallel()
			bare := newMemory(ttl, none).subject()
			bare.Forget, bare.Freeze, bare.Remaining, bare.Waiting = nil, nil, nil, nil
			if r := examine(t, check, bare); r.Verdict != want {
				t.Errorf("%s; want %s", r, want)
			}
		})
	}
}

// TestRunsOut: for a lock without renewal, ReleaseSafety needs no hook, since it can wait until the
// lease expires.
func TestRunsOut(t *testing.T) {
	t.Parallel()
	for f, want := range map[flaw]locktest.Verdict{neverRenews: locktest.Holds, none: locktest.Unchecked} {
		s := newMemory(ttl, f).subject()
		s.Renews, s.Forget = f != neverRenews, nil
		if r := examine(t, "ReleaseSafety", s); r.Verdict != want {
			t.Errorf("%q: %s; want %s", f, r, want)
		}
	}
}
