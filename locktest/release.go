package locktest

import (
	"context"
	"time"
)

// watchful is how long a third client asks for a lock that another client must still hold.
const watchful = 100 * time.Millisecond

// releaseSafety makes the first holder lose its lease, by Subject.Forget or by its TTL, and another client
// takes the lock. The late Unlock of the first holder must not release this lock. The result says whether
// that Unlock returned an error.
func releaseSafety(ctx context.Context, tr *trial) Result {
	if tr.s.Forget == nil && (tr.s.Renews || tr.s.TTL <= 0) {
		return unchecked("no hook Forget, and the leases do not run out by themselves")
	}
	late, err := tr.clients[0].Lock(ctx, tr.name)
	if err != nil {
		return breaks("lock: %v", err)
	}
	if tr.s.Forget != nil {
		if err := tr.s.Forget(ctx, tr.name); err != nil {
			return breaks("forget: %v", err)
		}
	}
	next, err := tr.clients[1].Lock(ctx, tr.name)
	if err != nil {
		return breaks("another client could not have the lock that was lost: %v", err)
	}
	return tr.leftInPlace(ctx, late.Unlock(ctx), next, tr.clients[2], "Unlock of the lost lease")
}

// unlockTwice unlocks a lease a second time, when another client has the lock. That client must keep it.
func unlockTwice(ctx context.Context, tr *trial) Result {
	lease, err := tr.clients[0].Lock(ctx, tr.name)
	if err != nil {
		return breaks("lock: %v", err)
	}
	if err := lease.Unlock(ctx); err != nil {
		return breaks("the first Unlock: %v", err)
	}
	next, err := tr.clients[1].Lock(ctx, tr.name)
	if err != nil {
		return breaks("lock after unlock: %v", err)
	}
	return tr.leftInPlace(ctx, lease.Unlock(ctx), next, tr.clients[2], "the second Unlock")
}

// leftInPlace judges whether an Unlock that returned err has released the lease `next` of another client.
func (tr *trial) leftInPlace(ctx context.Context, err error, next Lease, third Client, what string) Result {
	said := "said nothing"
	if err != nil {
		said = "said " + err.Error()
	}
	held, heldErr := tr.stillHeld(ctx, third, watchful)
	switch {
	case heldErr != nil:
		return breaks("%v", heldErr)
	case !held:
		return breaks("%s freed the lock of the next holder, and %s", what, said)
	}
	if err := next.Unlock(ctx); err != nil {
		return breaks("%s %s, and then the holder could not unlock: %v", what, said, err)
	}
	return tr.ifAble(ctx, third, holds("%s %s and left the next holder's lock in place", what, said))
}
