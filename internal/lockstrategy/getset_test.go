package lockstrategy

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
	"github.com/oversell/oversell/internal/tier"
)

// beforeGetSet calls do once, between the GET and the GETSET of a client.
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

// TestGetSetOverwritesExpiry: a client that comes second does not get the lock, but the lock has its
// expiry from then on: the holder's lease of two minutes ends after one.
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
	if err := first.Set(t.Context(), key, now.Add(-time.Second).UnixMilli(), 0).Err(); err != nil {
		t.Fatal(err)
	}
	second.AddHook(&beforeGetSet{do: func() {
		if l, err := holder.Take(t.Context(), key, ""); l == nil || err != nil {
			t.Fatalf("the holder: %v, %v", l, err)
		}
	}})
	if l, err := late.Take(t.Context(), key, ""); l != nil || err != nil {
		t.Fatalf("the client that came second: %v, %v; want no lock", l, err)
	}
	if got, want := first.Get(t.Context(), key).Val(), strconv.FormatInt(ahead.Add(ttl).UnixMilli(), 10); got != want {
		t.Errorf("the lock ends at %s, want %s: the time that the second client wrote", got, want)
	}
}
