package fault

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
	"github.com/oversell/oversell/internal/tier"
)

func startGroup(t *testing.T, kind string) *Servers {
	t.Helper()
	server, err := localserver.RedisNamed(kind)
	require.NoError(t, err)
	s := &Servers{redisServers: redisServers{group: localservertest.Group(t)}}
	require.NoError(t, s.startLockServers(server, 0, lockstrategy.NeedsRedis))
	return s
}

// TestFailover: after a primary is killed, the sentinels or the other primaries elect a successor. The
// successor lacks exactly the writes from the time when no replica followed. Afterwards the servers agree on
// their roles again.
func TestFailover(t *testing.T) {
	tier.Soak(t, "needs sentinels or a cluster of Redis")
	for _, kind := range []string{topology.Sentinel, topology.Cluster} {
		t.Run(kind, func(t *testing.T) {
			if kind == topology.Cluster {
				tier.Soak(t, "TestVerifyRedis covers a failover of a cluster")
			}
			t.Parallel()
			s := startGroup(t, kind)
			g := s.redises
			for name, parted := range map[string]bool{"the replicas followed": false, "no replica followed": true} {
				disturbed, err := s.Undisturbed(t.Context())
				require.NoError(t, err)
				before, err := g.primaries(t.Context())
				require.NoError(t, err)
				primary := before[0]
				if parted {
					require.NoError(t, g.part(t.Context()))
				}
				key := keyAt(t, g, primary)
				_, written, err := g.keeper(t.Context(), "apple")
				require.NoError(t, err)
				if !parted {
					awaitCopies(t, g, primary, key)
				}
				require.NoError(t, primary.Kill())
				elected, err := g.electedSince(t.Context(), before, time.Now().Add(time.Minute))
				require.NoError(t, err)
				copied, err := elected.keysOf(t.Context(), "apple")
				require.NoError(t, err)
				proof, err := lacked(written, copied)
				proven(t, name, proof, err, parted)
				proof, err = hadAll(written, copied)
				proven(t, name+", and is to have all", proof, err, !parted)
				require.NoError(t, g.mend(t.Context()))
				if why, err := disturbed(t.Context()); err != nil || why == "" {
					t.Errorf("%s: %q, %v: a failover that no fault has asked for went unnoticed", name, why, err)
				}
				g.asked, g.replaced, g.elected = true, primary, elected
				if why, err := disturbed(t.Context()); err != nil || why != "" {
					t.Errorf("%s: %q, %v: a failover that a fault has asked for is no disturbance", name, why, err)
				}
				g.replaced, g.elected = elected, primary // as if a further election had taken place
				if why, err := disturbed(t.Context()); err != nil || why == "" {
					t.Errorf("%s: %q, %v: a second failover went unnoticed", name, why, err)
				}
				forgetApples(t, g)
			}
			disturbed, err := s.Undisturbed(t.Context())
			require.NoError(t, err)
			if why, err := disturbed(t.Context()); err != nil || why != "" {
				t.Errorf("nothing happened: %q, %v", why, err)
			}
		})
	}
}

// keyAt writes a key of apples to the primary and returns it.
func keyAt(t *testing.T, g *redisGroup, primary *redisNode) string {
	t.Helper()
	c := primary.client()
	defer c.Close()
	for _, tag := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"} {
		if err := c.Set(t.Context(), "lock:{"+tag+"}:apple", "token", time.Hour).Err(); err == nil {
			return "lock:{" + tag + "}:apple"
		}
	}
	t.Fatal("the primary takes no key")
	return ""
}

func awaitCopies(t *testing.T, g *redisGroup, primary *redisNode, key string) {
	t.Helper()
	copies := func() (n int) {
		for _, node := range g.nodes {
			if there, err := node.keysOf(t.Context(), "apple"); err == nil && there[key] != "" {
				n++
			}
		}
		return n
	}
	want := 2 // a cluster has two copies of each key
	if g.kind == topology.Sentinel {
		want = len(g.nodes)
	}
	for deadline := time.Now().Add(time.Minute); copies() < want; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no replica has the key")
		}
	}
}

// TestMendCutOff: a sentinel that reconfigures a node closes all its connections, including those of mend. mend
// succeeds nevertheless.
func TestMendCutOff(t *testing.T) {
	tier.Soak(t, "needs sentinels or a cluster of Redis")
	t.Parallel()
	g := startGroup(t, topology.Sentinel).redises
	ctx, stop := context.WithCancel(t.Context())
	cuts := make(chan error, 1)
	go func() {
		defer close(cuts)
		for n := 0; ctx.Err() == nil; n++ {
			c := g.nodes[n%len(g.nodes)].client()
			err := c.Do(ctx, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Err()
			if _ = c.Close(); err != nil && ctx.Err() == nil {
				cuts <- err
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	for range 5 {
		if err := g.part(t.Context()); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		require.NoError(t, g.mend(t.Context()))
	}
	stop()
	require.NoError(t, <-cuts)
}

func forgetApples(t *testing.T, g *redisGroup) {
	t.Helper()
	all, err := g.primaries(t.Context())
	require.NoError(t, err)
	for _, node := range all {
		c := node.client()
		require.NoError(t, errors.Join(c.FlushAll(t.Context()).Err(), c.Close()))
	}
}

// TestMovedTo: a slot proves nothing if it has not moved, or if its keys are lost or were not there.
func TestMovedTo(t *testing.T) {
	key := map[string]string{"lock:apple": "token"}
	for _, c := range []struct {
		name                string
		before, left, there map[string]string
		struck              bool
	}{
		{"moved", key, nil, key, true},
		{"still there", key, key, key, false},
		{"lost on the way", key, nil, nil, false},
		{"run out, and the next buyer has one", key, nil, map[string]string{"lock:apple:next": "token"}, false},
		{"one of two is used up", map[string]string{"a": "1", "b": "1"}, nil, map[string]string{"b": "1"}, true},
		{"there was none", nil, nil, nil, false},
	} {
		proof, err := movedTo(c.before, c.left, c.there)
		proven(t, c.name, proof, err, c.struck)
	}
}

// TestMigration: a key keeps its remaining time to live, and the old node redirects clients to the
// new one.
func TestMigration(t *testing.T) {
	tier.Soak(t, "needs sentinels or a cluster of Redis")
	g := startGroup(t, topology.Cluster).redises
	all, err := g.primaries(t.Context())
	require.NoError(t, err)
	key := keyAt(t, g, all[0])
	m, err := newMigration(t.Context(), g, all[0], map[string]string{key: ""})
	require.NoError(t, err)
	defer m.close()
	require.NoError(t, errors.Join(m.keys(t.Context()), m.slots(t.Context(), g)))
	left, err1 := m.from.keysOf(t.Context(), "apple")
	there, err2 := m.to.keysOf(t.Context(), "apple")
	if err := errors.Join(err1, err2); err != nil || len(left) > 0 || there[key] == "" {
		t.Fatalf("%v; left %v, there %v", err, left, there)
	}
	if ttl := m.next.PTTL(t.Context(), key).Val(); ttl <= 0 || ttl > time.Hour {
		t.Errorf("the key lives for %s, want what was left of an hour", ttl)
	}
	if err := m.old.Get(t.Context(), key).Err(); err == nil {
		t.Error("the old node still answers for the key")
	}
}

// TestTried: tried reports a miss until a buyer has asked for the lock. That buyer's key is then on a primary.
func TestTried(t *testing.T) {
	tier.Soak(t, "needs sentinels or a cluster of Redis")
	g := startGroup(t, topology.Sentinel).redises
	primary, err := g.primaries(t.Context())
	require.NoError(t, err)
	c := primary[0].client()
	defer c.Close()
	require.NoError(t, c.Set(t.Context(), "count:apple", "7", 0).Err())
	before, err := g.keysOf(t.Context(), "apple")
	require.NoError(t, err)
	if err := g.tried(t.Context(), "apple", before, 50*time.Millisecond); !errors.Is(err, ErrMissed) {
		t.Errorf("nobody asks: %v, want that it missed", err)
	}
	keyAt(t, g, primary[0])
	if err := g.tried(t.Context(), "apple", before, time.Minute); err != nil {
		t.Errorf("somebody asks: %v", err)
	}
}

// TestKillOthers: if the fault has killed primaries, the election of a replica does not count as a disturbance.
func TestKillOthers(t *testing.T) {
	tier.Soak(t, "needs sentinels or a cluster of Redis")
	s := startGroup(t, topology.Sentinel)
	disturbed, err := s.Undisturbed(t.Context())
	require.NoError(t, err)
	before, err := s.redises.primaries(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.redises.killOthers(t.Context(), nil))
	if _, err := s.redises.electedSince(t.Context(), before, time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, s.redises.mend(t.Context()))
	if why, err := disturbed(t.Context()); err != nil || why != "" {
		t.Errorf("%q, %v", why, err)
	}
}

// TestBounded: neither a sale nor an endless wait is an answer in bounded time.
func TestBounded(t *testing.T) {
	answer := func(outcome purchase.Outcome, took time.Duration) []buyers.Answer {
		start := time.Now()
		return []buyers.Answer{{Answer: audit.Answer{Outcome: outcome, Start: start, End: start.Add(took)}}}
	}
	proof, err := bounded(answer(purchase.Failed, time.Second), 5*time.Second)
	proven(t, "refused", proof, err, true)
	proof, err = bounded(answer(purchase.Sold, time.Second), 5*time.Second)
	proven(t, "sold", proof, err, false)
	var stalled *stalledError
	if _, err := bounded(answer(purchase.Failed, time.Minute), 5*time.Second); !errors.As(err, &stalled) {
		t.Errorf("a buyer who waited for a minute: %v, want that it stalled", err)
	}
}

// TestDeaf: a deaf server serves its existing connections and refuses new ones.
func TestDeaf(t *testing.T) {
	tier.Soak(t, "needs sentinels or a cluster of Redis")
	g := startGroup(t, topology.Sentinel).redises
	bed := &Testbed{}
	shop := g.nodes[0].client()
	defer shop.Close()
	require.NoError(t, shop.Ping(t.Context()).Err())
	require.NoError(t, g.nodes[0].deaf(t.Context(), bed))
	if err := shop.Set(t.Context(), "key", "value", 0).Err(); err != nil {
		t.Errorf("who was connected: %v", err)
	}
	late := g.nodes[0].client()
	defer late.Close()
	if err := late.Ping(t.Context()).Err(); err == nil {
		t.Error("who came later is served")
	}
	require.NoError(t, bed.repair(context.Background()))
	if err := late.Ping(t.Context()).Err(); err != nil {
		t.Errorf("when all was undone: %v", err)
	}
}
