package rlock

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"
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
			await(t, seen, Waiting) // it is in the queue; the next one comes behind it
		}
		mustUnlock(t, first)
		var order []int
		for range 3 {
			order = append(order, receive(t, "granted", granted))
			receive(t, "unlocked", done)
		}
		if !slices.Equal(order, []int{0, 1, 2}) {
			t.Errorf("order %v, want 0, 1, 2", order)
		}
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

// TestFairDeadWaiter: a dead waiter is skipped when its time is over.
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
			if n := b.rdb.Exists(ctx, lock.keys.queue, lock.keys.timeouts).Val(); n != 0 {
				t.Error("the dead are still in the queue")
			}
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
	_ = lease.Unlock(ctx) // in time or not
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

// queue adds a waiter to the queue that never asks again.
func queue(b *bench, lock *Lock, field string, dead time.Time) {
	ctx := context.Background()
	b.rdb.RPush(ctx, lock.keys.queue, field)
	b.rdb.Do(ctx, "zadd", lock.keys.timeouts, dead.UnixMilli(), field)
}
