package lockstrategy

import (
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/lockstrategy/lease"
	"github.com/oversell/oversell/internal/lockstrategy/redisscript"
	"github.com/oversell/oversell/internal/lockstrategy/rlocker"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/rlock"
)

// fenced takes the lock of `redisson` with a fencing token, a number that is higher for each next holder.
// The buyer writes the token into the product's row before it reads.
//
//   - Summary: the lock of `redisson` + a token from the same script, UPDATE ... WHERE fence < ?
//   - Guarantees: A holder that another buyer has overtaken writes nothing and gets `lock_lost`, however
//     long it was paused and whatever Redis lost. The lock only avoids purchases that the token would reject.
//   - Breaks when: never; the late holder gets lock_lost
//   - How it breaks: This is true while all writers of the product use tokens from one source. If Redis loses
//     the counter, one buyer gets `lock_lost` and raises the counter above the highest token in the database.
//   - Cost: It costs the same as `redisson`, and one more update in the database.
//   - Source: Kleppmann, "How to do distributed locking", 2016, "Making the lock safe with fencing";
//     org.redisson.RedissonFencedLock
//   - Notes: A buyer first raises product.fence to its token, then reads, and then writes only while the
//     fence still is its token. Section.SellFenced says why the buyer must show the token before the read.
type fenced struct{ *rlocker.Locker }

func newFenced(d Deps) purchase.Strategy {
	return lease.NewFenced(d, "fenced", fenced{rlocker.New(d, "fenced", (*rlock.Client).NewFencedLock)})
}

func fencedEntry() Entry {
	return Entry{
		Name: "fenced", Family: redisLocks,
		Needs:   []Need{NeedsRedis},
		Scripts: redisscript.Rlock(),
		New:     newFenced,
		Traits: Traits{
			Leased: true, Confirms: true, WaitsFor: WaitLock,
			Lock: LockPromise{Renewed: true, SharedUnder: []promise.Condition{
				promise.Pause, promise.RedisRestart, promise.RedisFailover, promise.PrimaryPartition, promise.ClockJump,
			}},
		},
	}.holds()
}
