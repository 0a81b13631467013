package lockstrategy

import (
	"github.com/oversell/oversell/internal/lockstrategy/lease"
	"github.com/oversell/oversell/internal/lockstrategy/redisscript"
	"github.com/oversell/oversell/internal/lockstrategy/rlocker"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/rlock"
)

// redisson takes a lock of package rlock, which stores the holder in a Redis hash. The command that
// releases the lock hands it to the next buyer of the process, or wakes the other processes by a message.
// The lock is renewed while its process runs.
//
//   - Summary: Redisson's lock: reentrant hash, watchdog, pub/sub wake-up
//   - Guarantees: It gives the same guarantees as `watchdog`. Within a process, buyers get the lock in
//     order of arrival. A Java service that uses the same lock name shares the lock.
//   - Breaks when: as `watchdog`: a pause outlasts the TTL; Redis loses the key
//   - How it breaks: The holder pauses for longer than the TTL and then commits. Or Redis loses the key.
//   - Cost: One purchase takes one to two round trips to Redis, since the command that releases the lock
//     hands it to the next buyer of the process. Each process keeps one more connection, for messages.
//   - Source: Redisson documentation, "Distributed locks and synchronizers", Lock; org.redisson.RedissonLock.
//     The lock is rlock, in this repository
type redisson struct{ *rlocker.Locker }

func newRedisson(d Deps) purchase.Strategy {
	return lease.NewLocked(d, "redisson", redisson{rlocker.New(d, "redisson", (*rlock.Client).NewLock)})
}

func redissonEntry() Entry {
	return Entry{
		Name: "redisson", Family: redisLocks,
		Needs:   []Need{NeedsRedis},
		Scripts: redisscript.Rlock(),
		New:     newRedisson,
		Traits: Traits{
			Confirms: true,
			Leased:   true,
			WaitsFor: WaitLock,
			Lock:     LockPromise{Renewed: true},
			CaughtBy: map[string]string{"ExpiredLease": wantTwoHolders},
		},
	}.holdsExcept(renewedLeaseBreaks())
}
