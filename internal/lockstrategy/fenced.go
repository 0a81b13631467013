// fenced: redisson, with a fencing token from the script that grants the lock, and
// a database that refuses who comes late: a buyer first raises product.fence to
// its token, then reads, then writes while the fence is still its own.
//
// Guarantees:  no write of a holder that was overtaken, however long it was paused
//              and whatever Redis forgot: it gets lock_lost, and nothing is
//              written. The lock only spares the losers their work.
// Breaks when: never, while all that writes the product shows tokens of one
//              source. A Redis that forgets the counter costs one buyer lock_lost,
//              who raises it above what the database has seen.
// Cost:        as redisson, and one more update to the database.
// Source:      Kleppmann, "How to do distributed locking", 2016, "Making the lock
//              safe with fencing"; org.redisson.RedissonFencedLock. That the token
//              must be shown before the read: Section.SellFenced.

package lockstrategy

import (
	"context"

	"github.com/oversell/oversell/rlock"
)

// NewFenced needs the database and one Redis. Close it when it is not needed any
// more: it listens.
func NewFenced(d Deps) *Locked {
	return newFenced(d, "fenced", fencedLocker{newRlockLocker(d, "fenced", (*rlock.Client).NewFencedLock)})
}

type fencedLocker struct{ *rlockLocker }

// RaiseToken is tokenSource.RaiseToken.
func (f fencedLocker) RaiseToken(ctx context.Context, product string, atLeast int64) error {
	return f.of(product).RaiseToken(ctx, atLeast)
}
