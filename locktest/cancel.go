package locktest

import (
	"context"
	"errors"
	"time"

	"go.uber.org/goleak"
)

// hangs is the maximum time until a canceled Lock returns.
const hangs = 5 * time.Second

// cancelWaiting ends a waiter's context while another client holds the lock. Lock must then return.
func cancelWaiting(ctx context.Context, tr *trial) Result {
	holder, err := tr.clients[0].Lock(ctx, tr.name)
	if err != nil {
		return breaks("lock: %v", err)
	}
	waiting, hangUp := context.WithCancel(ctx)
	defer hangUp()
	answer := make(chan error, 1)
	go func() {
		lease, err := tr.clients[1].Lock(waiting, tr.name)
		if err == nil {
			_ = lease.Unlock(ctx)
		}
		answer <- err
	}()
	if err := tr.queued(ctx, 1, 50*time.Millisecond); err != nil {
		return breaks("%v", err)
	}
	begin := time.Now()
	hangUp()
	var given error
	select {
	case given = <-answer:
	case <-ctx.Done():
		return breaks("a waiter that hung up was still waiting when the test ended")
	case <-time.After(hangs):
		_ = holder.Unlock(ctx)
		return breaks("a waiter that hung up still waits after %s", hangs)
	}
	took := time.Since(begin)
	if given == nil {
		return breaks("a waiter that hung up was given the lock, and the holder had not unlocked")
	}
	if took > grace+tr.late() {
		return breaks("a waiter that hung up returned after %s", round(took))
	}
	if err := holder.Unlock(ctx); err != nil {
		return breaks("unlock: %v", err)
	}
	gap, err := tr.next(ctx, tr.clients[2])
	if err != nil {
		return breaks("after a waiter hung up: %v", err)
	}
	said := "context.Canceled"
	if !errors.Is(given, context.Canceled) {
		said = "not context.Canceled but " + given.Error()
	}
	return holds("a waiter that hung up returned after %s with %s; the next had the lock %s after the Unlock",
		round(took), said, round(gap))
}

// cancelRace cancels a waiter at about the time when it gets the lock. There are 200 rounds, or as many as
// fit into 5 s. A handover is the time from an Unlock to the next grant. The cancellations are spread from
// one handover before the Unlock to 1.6 handovers after it, so some come before the grant and some after it.
// The lock must be free after each round.
func cancelRace(ctx context.Context, tr *trial) Result {
	const most = 200
	var (
		begin           = time.Now()
		rounds, granted int
		handOver        time.Duration // handover of the first round, which cancels no waiter
	)
	for rounds < most && (rounds < 20 || time.Since(begin) < 5*time.Second) {
		apart := handOver * time.Duration(rounds*17%53-20) / 20 // the rounds cover the whole span, in an irregular order
		had, took, err := tr.hangUp(ctx, apart, rounds == 0)
		if err != nil {
			return breaks("round %d: %v", rounds, err)
		}
		if rounds == 0 {
			handOver = min(took, 100*time.Millisecond)
		}
		if had {
			granted++
		}
		if _, err := tr.next(ctx, tr.clients[2]); err != nil {
			return breaks("round %d, a waiter hung up %s after the Unlock: %v", rounds, round(apart), err)
		}
		rounds++
	}
	if granted < 2 { // only the first round, which cancels no waiter, got the lock
		return inconclusive("none of %d waiters that hung up from %s before the Unlock to 1.6 times as long after it had the lock", rounds-1, round(handOver))
	}
	return holds("%d waiters hung up from %s before the Unlock to 1.6 times as long after it, %d of them had the lock; it was free after each",
		rounds, round(handOver), granted)
}

// hangUp runs one round: a holder unlocks, and hangUp cancels the waiter. The parameter `apart` is the time
// from the Unlock to the cancellation, negative for a cancellation before the Unlock. If `stays` is true,
// hangUp does not cancel the waiter. It returns whether the waiter got the lock, and how long after the Unlock.
func (tr *trial) hangUp(ctx context.Context, apart time.Duration, stays bool) (had bool, took time.Duration, err error) {
	holder, err := tr.clients[0].Lock(ctx, tr.name)
	if err != nil {
		return false, 0, err
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	answer := make(chan time.Time, 1)
	go func() {
		lease, err := tr.clients[1].Lock(waiting, tr.name)
		answered := time.Now()
		if had = err == nil; had {
			_ = lease.Unlock(ctx) // an error is right: the lease may have ended with the waiter's context
		}
		answer <- answered
	}()
	if err := tr.queued(ctx, 1, 2*time.Millisecond); err != nil {
		return false, 0, err
	}
	if !stays && apart <= 0 {
		cancel()
		spin(-apart)
	}
	freed := time.Now()
	hungUp := make(chan struct{})
	go func() {
		defer close(hungUp)
		if !stays && apart > 0 {
			spin(apart)
			cancel()
		}
	}()
	err = holder.Unlock(ctx)
	answered := <-answer
	<-hungUp
	return had, answered.Sub(freed), err
}

// spin waits for the duration d. It uses a busy loop for the last 2 ms, since a timer is not precise enough.
func spin(d time.Duration) {
	begin := time.Now()
	if d > 2*time.Millisecond {
		time.Sleep(d - 2*time.Millisecond)
	}
	for time.Since(begin) < d {
	}
}

// errLeft: no client holds the lock, but another client cannot take it.
var errLeft = errors.New("the lock was left without a holder")

// next checks that the lock is free: it takes the lock and gives it back. That must take less than half a TTL
// and less than half a second. A lock that was left without a holder becomes free only when its TTL ends.
func (tr *trial) next(ctx context.Context, c Client) (time.Duration, error) {
	begin := time.Now()
	lease, err := c.Lock(ctx, tr.name)
	took := time.Since(begin)
	if err != nil {
		return took, errors.Join(errLeft, err)
	}
	if tr.s.TTL > 0 && took > min(tr.s.TTL/2, 2*grace)+tr.late() {
		err = errLeft
	}
	return took, errors.Join(err, lease.Unlock(ctx))
}

// noLeak checks that all goroutines of a client end with the client, even after canceled waiters. It first
// opens and closes one client, so that goroutines which start once per process do not count.
func noLeak(ctx context.Context, tr *trial) Result {
	if err := tr.life(ctx); err != nil {
		return breaks("%v", err)
	}
	before := goleak.IgnoreCurrent()
	for range 3 {
		if err := tr.life(ctx); err != nil {
			return breaks("%v", err)
		}
	}
	begin := time.Now()
	for {
		err := goleak.Find(before) // tries for about a second
		if err == nil {
			return holds("three clients came and went, and left nothing")
		}
		if ctx.Err() != nil || time.Since(begin) > 5*time.Second+tr.late() {
			return breaks("%.600v", err)
		}
	}
}

// life runs a client that holds the lock, waits for it, cancels a wait and is closed.
func (tr *trial) life(ctx context.Context) error {
	c, err := tr.s.Connect(ctx)
	if err != nil {
		return err
	}
	lease, err := c.Lock(ctx, tr.name)
	if err != nil {
		return errors.Join(err, c.Close())
	}
	waiting, hangUp := context.WithTimeout(ctx, 20*time.Millisecond)
	defer hangUp()
	if _, err := c.Lock(waiting, tr.name); err == nil {
		return errors.Join(errors.New("a second holder"), c.Close())
	}
	return errors.Join(lease.Unlock(ctx), c.Close())
}
