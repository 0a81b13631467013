package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/locktest"
)

func TestMain(m *testing.M) {
	locktest.Child(open)
	os.Exit(m.Run())
}

// ttl is the TTL of the leases in these tests.
const ttl = 2 * time.Second

func newServer(t testing.TB) *server {
	t.Helper()
	return newServers(t, topology.Single)
}

func newServers(t testing.TB, topology string) *server {
	t.Helper()
	s, err := startServer(topology)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestConformance runs the checks on each lock. Their results are those that
// docs/guides/lock-in-your-program.md describes: a lock passes the checks of its claims and fails
// the others. The function expected knows the exceptions.
func TestConformance(t *testing.T) {
	srv := newServer(t)
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			for _, c := range locktest.Checks() {
				t.Run(c.Name, func(t *testing.T) {
					got := c.Examine(t.Context(), srv.subject(k, ttl))
					want, seen := expected(k, c.Name)
					if got.Verdict != want || got.Seen != seen {
						t.Errorf("%s\nwant %s, seen %s", got, want, seen)
					}
					t.Log(got)
				})
			}
		})
	}
}

// expected returns the known result of a check on a lock.
func expected(k kind, check string) (verdict, seen locktest.Verdict) {
	claims := map[string]bool{
		"Fairness": k.fair, "Renewal": k.renews, "LossSignal": k.signalsLoss, "FrozenServer": k.signalsLoss,
	}
	if claimed, optional := claims[check]; optional && !claimed {
		return locktest.NotClaimed, locktest.Breaks
	}
	// rueidislock waits for an unanswered renewal until one TTL after sending it. That is half a TTL
	// after the end of the lease.
	if check == "FrozenServer" && strings.HasPrefix(k.name, "rueidislock") {
		return locktest.Breaks, locktest.Breaks
	}
	return locktest.Holds, locktest.Holds
}

// TestCommandsCountScripts: the number of commands includes those that a script calls.
func TestCommandsCountScripts(t *testing.T) {
	srv := newServer(t)
	before, err := srv.commands(t.Context())
	require.NoError(t, err)
	require.NoError(t, srv.rdb.Eval(t.Context(), "redis.call('set', KEYS[1], 1) return redis.call('get', KEYS[1])", []string{"a"}).Err())
	after, err := srv.commands(t.Context())
	require.NoError(t, err)
	if after-before != 4 { // INFO, EVAL, SET, GET
		t.Errorf("%d commands, want 4", after-before)
	}
}

// TestQuick: the command prints a row with figures for each lock.
func TestQuick(t *testing.T) {
	var out, progress bytes.Buffer
	if err := run(t.Context(), []string{"-quick", "-markdown", "-only", "redislock-10ms"}, &out, &progress); err != nil {
		t.Fatalf("%v; %s", err, &progress)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[2], "| redislock-10ms | ") || strings.Count(lines[2], "/s · ") != 4 {
		t.Errorf("want a head and one row of four cells:\n%s", &out)
	}
	if got, want := strings.Count(progress.String(), "run 1/1"), 4; got != want {
		t.Errorf("%d lines of progress, want %d", got, want)
	}
}
