package locktest_test

import (
	"context"
	"errors"
	"flag"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/tier"
	"github.com/oversell/oversell/locktest"
)

func TestMain(m *testing.M) {
	locktest.Child(func(addr string) (locktest.Subject, error) {
		if addr == "nowhere" {
			return locktest.Subject{}, errors.New("no such subject")
		}
		return redislockAt(addr), nil
	})
	// Run more tests at once than there are cores: the tests of a lock in memory mostly wait.
	if err := flag.Set("test.parallel", "32"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// redislockAt is a lock that child processes can share.
func redislockAt(addr string) locktest.Subject {
	return locktest.Subject{
		Name: "redislock", Spec: addr,
		Connect: func(context.Context) (locktest.Client, error) {
			rdb := redis.NewClient(&redis.Options{Addr: addr})
			return &redislockClient{rdb: rdb, locks: redislock.New(rdb)}, nil
		},
	}
}

type redislockClient struct {
	rdb   *redis.Client
	locks *redislock.Client
}

func (c *redislockClient) Lock(ctx context.Context, name string) (locktest.Lease, error) {
	l, err := c.locks.Obtain(ctx, name, time.Minute, &redislock.Options{RetryStrategy: redislock.LinearBackoff(time.Millisecond)})
	if err != nil {
		return nil, err
	}
	return redislockLease{l}, nil
}

func (c *redislockClient) Close() error { return c.rdb.Close() }

type redislockLease struct{ lock *redislock.Lock }

func (l redislockLease) Unlock(ctx context.Context) error { return l.lock.Release(ctx) }

func measured(t *testing.T, s locktest.Subject, load locktest.Load) locktest.Figures {
	t.Helper()
	f, err := locktest.Measure(t.Context(), s, load)
	require.NoError(t, err)
	return f
}

// TestMeasureHere: the figures of a lock in memory, in this process.
func TestMeasureHere(t *testing.T) {
	tier.Test(t, "measures for a second")
	s := newMemory(time.Minute, none).subject()
	f := measured(t, s, locktest.Load{Contenders: 8, Processes: 1, For: time.Second})
	if f.Handovers < 8 || f.HandoversPerSecond <= 0 || len(f.ByProcess) != 1 || f.ByProcess[0] != f.Grants || f.Handovers >= f.Grants || f.Overlaps != 0 {
		t.Errorf("%+v: want some hand-overs", f)
	}
	if f.LongestWait < f.P99Wait || f.P99Wait < f.MedianWait || f.MedianWait <= 0 {
		t.Errorf("%+v: want median <= p99 <= longest", f)
	}
	if f.CommandsPerHandover < 2 || f.CommandsPerHandover > 2.5 { // one for Lock, one for Unlock, and some for waiters that hung up at the end
		t.Errorf("%.2f commands per hand-over, want about 2", f.CommandsPerHandover)
	}
}

// TestMeasureOverlaps: Overlaps counts two holders at once.
func TestMeasureOverlaps(t *testing.T) {
	s := newMemory(time.Minute, noExclusion).subject()
	f := measured(t, s, locktest.Load{Contenders: 4, Processes: 1, Section: time.Millisecond, For: time.Second})
	if f.Overlaps == 0 {
		t.Errorf("%+v: want overlaps of a lock that does not exclude", f)
	}
}

// TestMeasureStarving: a waiter that is never served counts in LongestWait, although it got no grant.
func TestMeasureStarving(t *testing.T) {
	const period = 400 * time.Millisecond
	s := newMemory(time.Minute, lastFirst).subject()
	f := measured(t, s, locktest.Load{Contenders: 8, Processes: 1, Section: time.Millisecond, For: period})
	if f.LongestWait < period/2 {
		t.Errorf("%+v: want a longest wait of nearly %s", f, period)
	}
	if f.Grants == 0 {
		t.Errorf("%+v: want grants", f)
	}
}

// TestMeasureProcesses: four child processes share one lock.
func TestMeasureProcesses(t *testing.T) {
	s := redislockAt(miniredis.RunT(t).Addr())
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	f := measured(t, s, locktest.Load{Contenders: 8, Processes: 4, For: 300 * time.Millisecond})
	sum := 0
	for _, n := range f.ByProcess {
		sum += n
	}
	if len(f.ByProcess) != 4 || sum != f.Grants || sum == 0 || f.Overlaps != 0 {
		t.Errorf("%+v: want hand-overs of four processes", f)
	}
	if !math.IsNaN(f.CommandsPerHandover) {
		t.Errorf("%v commands per hand-over without a hook", f.CommandsPerHandover)
	}
}

// TestMeasureErrors: if a child fails, the error contains its last output.
func TestMeasureErrors(t *testing.T) {
	load := locktest.Load{Contenders: 2, Processes: 2, For: 50 * time.Millisecond}
	for _, c := range []struct {
		name, spec, want string
		load             locktest.Load
	}{
		{"unknown subject", "nowhere", "no such subject", load},
		{"no server", "127.0.0.1:1", "refused", load},
		{"no spec", "", "needs Subject.Spec", load},
		{"uneven", "x", "want a multiple", locktest.Load{Contenders: 3, Processes: 2, For: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := locktest.Measure(t.Context(), redislockAt(c.spec), c.load)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %s", err, c.want)
			}
		})
	}
}

// TestMedian: Median takes the median of each figure separately.
func TestMedian(t *testing.T) {
	got := locktest.Median([]locktest.Figures{
		{HandoversPerSecond: 10, P99Wait: 3, LongestWait: 9},
		{HandoversPerSecond: 30, P99Wait: 1, LongestWait: 7},
		{HandoversPerSecond: 20, P99Wait: 2, LongestWait: 8},
	})
	if got.HandoversPerSecond != 20 || got.P99Wait != 2 || got.LongestWait != 8 {
		t.Errorf("%+v, want 20, 2 and 8", got)
	}
}
