package rlock

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/expect"
)

// TestFairOrder: three waiters of three processes get the lock in the order of the queue.
func TestFairOrder(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		ctx := within(t)
		name := name(t)
		first := mustLock(t, b.client(t).NewFairLock(name), ctx)
		granted := make(chan int, 3)
		done := make(chan struct{}, 3)
		for i := range 3 {
			observer, seen := events()
			lock := b.client(t, observer).NewFairLock(name)
			go func() {
				section(ctx, t, lock, func(*Lease) { granted <- i })
				done <- struct{}{}
			}()
			await(t, seen, Waiting) // the waiter is in the queue now, so the next waiter comes behind it
		}
		mustUnlock(t, first)
		var order []int
		for range 3 {
			order = append(order, receive(t, "granted", granted))
			receive(t, "unlocked", done)
		}
		expect.DeepEqual(t, order, []int{0, 1, 2}, "order")
	})
}

// TestFairNoBarging: a newcomer cannot take a free lock that has a queue.
func TestFairNoBarging(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		ctx := within(t)
		lock := b.client(t).NewFairLock(name(t))
		queue(b, lock, "u:1", time.Now().Add(time.Hour))
		if lease, err := lock.TryLock(ctx); err == nil {
			t.Errorf("got ahead of the queue: %v", lease)
		}
	})
}

// TestFairDeadWaiter: a dead waiter is skipped after its FairWait or Wait.
func TestFairDeadWaiter(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		dead int
	}{{"one", 1}, {"three", 3}} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := onServer(t)
			ctx := within(t)
			lock := b.client(t).NewFairLock(name(t))
			over := time.Now()
			for i := range row.dead {
				over = over.Add(300 * time.Millisecond)
				queue(b, lock, fmt.Sprintf("dead:%d", i), over)
			}
			lease := mustLock(t, lock, ctx)
			if early := time.Until(over); early > 0 {
				t.Errorf("granted %v before the last dead waiter's time was over", early)
			}
			expect.Equal(t, b.rdb.Exists(ctx, lock.keys.queue, lock.keys.timeouts).Val(), 0, "the dead are still in the queue")
			mustUnlock(t, lease)
		})
	}
}

// TestFairDeadHead: waiters behind a dead one get the lock without a notification.
func TestFairDeadHead(t *testing.T) {
	t.Parallel()
	b := onServer(t)
	ctx := within(t)
	observer, seen := events()
	lock := b.client(t, observer).NewFairLock(name(t))
	lease := mustLock(t, lock, ctx, LeaseTime(300*time.Millisecond))
	queue(b, lock, "dead:1", time.Now().Add(600*time.Millisecond))
	granted := lineUp(ctx, t, lock, seen)
	_ = lease.Unlock(ctx) // may come in time or too late
	mustUnlock(t, receive(t, "granted", granted))
}

// TestFairQuitter: the notification of a waiter that gives up goes to the next waiter.
func TestFairQuitter(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		ctx := within(t)
		observer, seen := events()
		c := b.client(t, observer)
		lock := c.NewFairLock(name(t))
		queue(b, lock, c.id+":7", time.Now().Add(time.Hour))
		granted := lineUp(ctx, t, lock, seen)
		quitter := &claim{lock: lock, slot: (&Holder{id: 7}).enter(c, lock.keys.lock), ctx: ctx}
		quitter.quit()
		mustUnlock(t, receive(t, "granted", granted))
	})
}

// queue appends a waiter that never asks again.
func queue(b *bench, lock *Lock, field string, dead time.Time) {
	ctx := context.Background()
	b.rdb.RPush(ctx, lock.keys.queue, field)
	b.rdb.Do(ctx, "zadd", lock.keys.timeouts, dead.UnixMilli(), field)
}

type counter struct {
	redis.Hook
	sent atomic.Int64
}

func (c *counter) DialHook(next redis.DialHook) redis.DialHook { return next }
func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.sent.Add(1)
		return next(ctx, cmd)
	}
}

func (c *counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// rush makes goroutines of each client take the lock repeatedly, and returns the longest wait.
func rush(t testing.TB, clients []*Client, newLock maker, name string, contenders, grants int, inside func(*Lease)) time.Duration {
	t.Helper()
	var group sync.WaitGroup
	var taken, worst atomic.Int64
	for _, c := range clients {
		lock := newLock(c, name)
		for range contenders {
			group.Go(func() {
				for taken.Add(1) <= int64(grants) {
					asked := time.Now()
					section(context.Background(), t, lock, func(lease *Lease) {
						waited := int64(time.Since(asked))
						for old := worst.Load(); waited > old && !worst.CompareAndSwap(old, waited); old = worst.Load() {
						}
						inside(lease)
					})
				}
			})
		}
	}
	group.Wait()
	return time.Duration(worst.Load())
}

// TestRush: 64 contenders of 8 clients all get the lock of each kind, one at a time. The tokens of a
// fenced lock grow. The handover of a plain lock costs few commands: 1 to 1.5 in BenchmarkHandOver.
func TestRush(t *testing.T) {
	t.Parallel()
	const grants = 2000
	eachKind(t, func(t *testing.T, newLock maker) {
		sent := &counter{}
		var clients []*Client
		for range 8 {
			rdb := dial(t, onServer(t).addr)
			rdb.AddHook(sent)
			c := New(rdb)
			t.Cleanup(func() { _ = c.Close() })
			clients = append(clients, c)
		}
		var inside atomic.Int32
		var last int64 // the greatest token that the fenced resource has seen; two holders at once would be a data race
		rush(t, clients, newLock, name(t), 8, grants, func(lease *Lease) {
			expect.Equal(t, inside.Add(1), 1, "buyers inside")
			if token := lease.Token(); token != 0 && token <= last {
				t.Errorf("token %d after %d", token, last)
			}
			last = lease.Token()
			inside.Add(-1)
		})
		if n := sent.sent.Load(); t.Name() == "TestRush/plain" && n > 4*grants {
			t.Errorf("%d commands for %d hand-overs, want 4 each at most", n, grants)
		}
	})
}

// BenchmarkHandOver measures 64 contenders for one lock with an empty section: the time of one
// handover, the longest wait, and the commands per handover.
func BenchmarkHandOver(b *testing.B) {
	for _, shape := range []struct {
		name                string
		clients, contenders int
		options             []ClientOption
	}{
		{"one client", 1, 64, nil},
		{"one client, offered to everybody", 1, 64, []ClientOption{HandOvers(0)}},
		{"8 clients", 8, 8, nil},
	} {
		b.Run(shape.name, func(b *testing.B) {
			sent := &counter{}
			var clients []*Client
			for range shape.clients {
				rdb := dial(b, onServer(b).addr)
				rdb.AddHook(sent)
				c := New(rdb, shape.options...)
				defer c.Close()
				clients = append(clients, c)
			}
			n := max(b.N, 20_000) // -benchtime 1x would measure a single handover
			b.ResetTimer()
			worst := rush(b, clients, (*Client).NewLock, name(b), shape.contenders, n, func(*Lease) {})
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "handovers/s")
			b.ReportMetric(worst.Seconds(), "worst-s")
			b.ReportMetric(float64(sent.sent.Load())/float64(n), "sent/handover")
		})
	}
}
