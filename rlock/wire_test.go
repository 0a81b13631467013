package rlock

import (
	"testing"
	"time"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/require"
)

// TestNames: the keys are the same as Redisson's, see RedissonObject.prefixName.
func TestNames(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		want keys
	}{
		{"stock", keys{
			"stock", "redisson_lock__channel:{stock}", "redisson_lock_token:{stock}",
			"redisson_lock_queue:{stock}", "redisson_lock_timeout:{stock}",
		}},
		{"shop:{stock}:1", keys{
			"shop:{stock}:1", "redisson_lock__channel:shop:{stock}:1", "redisson_lock_token:shop:{stock}:1",
			"redisson_lock_queue:shop:{stock}:1", "redisson_lock_timeout:shop:{stock}:1",
		}},
		{"a{b", keys{
			"a{b", "redisson_lock__channel:a{b", "redisson_lock_token:a{b",
			"redisson_lock_queue:a{b", "redisson_lock_timeout:a{b",
		}},
	} {
		expect.Equal(t, namesOf(row.name), row.want, "namesOf", row.name)
	}
	expect.Equal(t, namesOf("n").waiter("u:1"), "redisson_lock__channel:{n}:u:1", "channel of a fair waiter")
}

// TestWire: the keys and their contents are those of Redisson. TestRedisson runs the real one.
func TestWire(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		ctx := within(t)
		c := b.client(t, ID("8743c9c0-0795-4907-87fd-6c719a6b4586"))
		holder := &Holder{id: 42}
		name := name(t)
		listener := b.rdb.Subscribe(ctx, "redisson_lock__channel:{"+name+"}")
		defer listener.Close()
		require.NoError(t, expect.ErrorOf(listener.Receive(ctx)))

		lock := c.NewLock(name)
		hash := func(want map[string]string) {
			t.Helper()
			got, err := b.rdb.HGetAll(ctx, name).Result()
			if err != nil || len(got) != len(want) {
				t.Fatalf("hash %v, want %v (%v)", got, want, err)
			}
			for field, count := range want {
				if got[field] != count {
					t.Fatalf("hash %v, want %v", got, want)
				}
			}
		}
		const field = "8743c9c0-0795-4907-87fd-6c719a6b4586:42"
		outer := mustLock(t, lock, WithHolder(ctx, holder), LeaseTime(time.Hour))
		hash(map[string]string{field: "1"})
		if pttl := b.rdb.PTTL(ctx, name).Val(); pttl <= time.Hour-testTimeout || pttl > time.Hour {
			t.Errorf("TTL %v, want an hour", pttl)
		}
		inner := mustLock(t, lock, WithHolder(ctx, holder), LeaseTime(time.Minute))
		hash(map[string]string{field: "2"})
		if pttl := b.rdb.PTTL(ctx, name).Val(); pttl <= time.Minute {
			t.Errorf("the lock inside shortened the TTL of the outer one to %v", pttl)
		}
		mustUnlock(t, inner)
		hash(map[string]string{field: "1"})
		mustUnlock(t, outer)
		hash(nil)
		message, err := listener.ReceiveMessage(ctx)
		if err != nil || message.Payload != "0" {
			t.Errorf("got message %v (%v), want 0", message, err)
		}
	})
}

// TestMessageWakes: while a holder of another client has the lock, our waiters wait, and the message of
// its release wakes them.
func TestMessageWakes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		ctx := within(t)
		observer, seen := events()
		lock := b.client(t, observer).NewLock(name(t))
		b.rdb.HSet(ctx, lock.keys.lock, "8743c9c0-0795-4907-87fd-6c719a6b4586:1", 1)
		b.rdb.PExpire(ctx, lock.keys.lock, time.Hour)

		granted := lineUp(ctx, t, lock, seen)
		until(t, "subscribed", func() bool {
			return b.rdb.PubSubNumSub(ctx, lock.keys.channel).Val()[lock.keys.channel] == 1
		})
		b.rdb.Del(ctx, lock.keys.lock)
		b.rdb.Publish(ctx, lock.keys.channel, "0")
		mustUnlock(t, receive(t, "granted", granted))
	})
}

// TestHandOversPublish: after the last handover within a process, a message reaches the other
// processes.
func TestHandOversPublish(t *testing.T) {
	t.Parallel()
	b := onServer(t)
	ctx := within(t)
	c := b.client(t)
	name := name(t)
	listener := b.rdb.Subscribe(ctx, namesOf(name).channel)
	defer listener.Close()
	require.NoError(t, expect.ErrorOf(listener.Receive(ctx)))
	stop, stopped := make(chan struct{}), make(chan struct{})
	for range 8 {
		go func() {
			defer func() { stopped <- struct{}{} }()
			for {
				select {
				case <-stop:
					return
				default:
				}
				section(ctx, t, c.NewLock(name), func(*Lease) {})
			}
		}()
	}
	for range 20 {
		if m, err := listener.ReceiveMessage(ctx); err != nil || m.Payload != "0" {
			t.Errorf("got %v, %v", m, err)
		}
	}
	close(stop)
	for range 8 {
		receive(t, "ended", stopped)
	}
}

func TestFairWire(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		ctx := within(t)
		observer, seen := events()
		c := b.client(t, ID("u"), observer)
		lock := c.NewFairLock(name(t))
		lease := mustLock(t, lock, WithHolder(ctx, &Holder{id: 1}), LeaseTime(time.Hour))
		expect.Equal(t, b.rdb.HGetAll(ctx, lock.keys.lock).Val()["u:1"], "1", "holds of u:1")
		granted := lineUp(WithHolder(ctx, &Holder{id: 2}), t, lock, seen)
		if got := b.rdb.LRange(ctx, lock.keys.queue, 0, -1).Val(); len(got) != 1 || got[0] != "u:2" {
			t.Errorf("queue %q, want [u:2]", got)
		}
		score := time.UnixMilli(int64(b.rdb.ZScore(ctx, lock.keys.timeouts, "u:2").Val()))
		if in := time.Until(score); in < time.Hour || in > time.Hour+10*time.Minute {
			t.Errorf("counts as dead in %v, want the TTL and 5 minutes", in)
		}
		channel := lock.keys.waiter("u:2")
		until(t, "subscribed to its own channel", func() bool {
			return b.rdb.PubSubNumSub(ctx, channel).Val()[channel] == 1
		})
		mustUnlock(t, lease)
		mustUnlock(t, receive(t, "granted", granted))
		expect.Equal(t, b.rdb.Exists(ctx, lock.keys.lock, lock.keys.queue, lock.keys.timeouts).Val(), 0, "keys left behind")
	})
}
