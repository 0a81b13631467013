package lockstrategy

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
	"github.com/oversell/oversell/internal/tier"
)

// beforeGetSet calls the function do once, between the GET and the GETSET of a client.
type beforeGetSet struct {
	do func()
}

func (beforeGetSet) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b *beforeGetSet) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if do := b.do; cmd.Name() == "getset" && do != nil {
			b.do = nil
			do()
		}
		return next(ctx, cmd)
	}
}

func (beforeGetSet) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// TestGetSetOverwritesExpiry: a client that comes second does not get the lock, but its GETSET
// replaces the lock's expiry. So the holder's lease of two minutes ends after one.
func TestGetSetOverwritesExpiry(t *testing.T) {
	tier.Test(t, "needs servers")
	const key, ttl = "lock:apple", time.Second
	node := localservertest.Redis(t)
	first, second := redis.NewClient(&redis.Options{Addr: node.Addr}), redis.NewClient(&redis.Options{Addr: node.Addr})
	defer first.Close()
	defer second.Close()
	now := time.Now()
	ahead := now.Add(time.Minute)
	holder := getSet{first, 2 * time.Minute, func() time.Time { return now }}
	late := getSet{second, ttl, func() time.Time { return ahead }}
	require.NoError(t, first.Set(t.Context(), key, now.Add(-time.Second).UnixMilli(), 0).Err())
	second.AddHook(&beforeGetSet{do: func() {
		if l, err := holder.Take(t.Context(), key, ""); l == nil || err != nil {
			t.Fatalf("the holder: %v, %v", l, err)
		}
	}})
	if l, err := late.Take(t.Context(), key, ""); l != nil || err != nil {
		t.Fatalf("the client that came second: %v, %v; want no lock", l, err)
	}
	expect.Equal(t, first.Get(t.Context(), key).Val(), strconv.FormatInt(ahead.Add(ttl).UnixMilli(), 10), "the end of the lock, from the time that the second client wrote")
}

// TestLockPromises: a lock may have two holders only if the strategy holds nevertheless. An entry
// sets FreesAnothers exactly if the conformance suite catches it releasing another holder's lock.
func TestLockPromises(t *testing.T) {
	for _, e := range All() {
		for _, c := range e.Lock.SharedUnder {
			expect.Equal(t, e.Promise[c], verdict.Holds, e.Name, "under", c, "there is nothing to share")
			if e.Excludes(c, dialect.MySQL) {
				t.Errorf("%s under %s both excludes and shares", e.Name, c)
			}
		}
		caught := false
		for _, says := range e.CaughtBy {
			caught = caught || says == wantFreedAnother
		}
		expect.Equal(t, caught, e.Lock.FreesAnothers, e.Name, "frees another's lock, and the suite catches it")
		if lock := e.WaitsFor == WaitLock; !lock && (e.Lock.Renewed || e.Lock.FreesAnothers || e.Excludes(promise.Rush, dialect.MySQL)) {
			t.Errorf("%s promises something of a lock, and reports none", e.Name)
		}
	}
	for _, c := range []struct {
		strategy  string
		condition promise.Condition
		want      bool
	}{
		{"redis", promise.Rush, true},
		{"redis", promise.Pause, false},
		{"fenced", promise.Pause, false},
		{"fenced", promise.Partition, true},
		{"etcd", promise.Partition, false}, // the catalogue promises nothing
		{"conditional", promise.Rush, false},
		{"setnx", promise.Crash, true}, // setnx stalls, with one holder
	} {
		entry, _ := ByName(c.strategy)
		expect.Equal(t, entry.Excludes(c.condition, dialect.MySQL), c.want, c.strategy, "excludes under", c.condition)
	}
	for _, c := range []struct {
		strategy  string
		condition promise.Condition
		database  string
		want      bool
	}{
		{"redis", promise.TwoProcesses, dialect.Galera, true}, // on Galera the sales have no promise, but the lock is the same
		{"redis", promise.DBNodeFreeze, dialect.Galera, false},
		{"redis", promise.DBNodeKill, dialect.Galera, false},
		{"watchdog", promise.DBNodeKill, dialect.Galera, true},
		{"watchdog", promise.Pause, dialect.Galera, false},
		{"redis", promise.Crash, dialect.PostgresSerializable, true},
		{"early-unlock", promise.TwoProcesses, dialect.Galera, false},
	} {
		entry, _ := ByName(c.strategy)
		expect.Equal(t, entry.Excludes(c.condition, c.database), c.want, c.strategy, "excludes under", c.condition, "on", c.database)
	}
	var renewed []string
	for _, e := range All() {
		if e.Lock.KeptUnder(promise.SlowSection) {
			renewed = append(renewed, e.Name)
		}
	}
	expect.DeepEqual(t, renewed, []string{"watchdog", "redisson", "multilock", "fenced", "zookeeper", "etcd", "etcd-fenced"}, "renewed")
}
