package lockstrategy

import (
	"context"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/load/sizing"
	"github.com/oversell/oversell/internal/lockstrategy/lease"
	"github.com/oversell/oversell/internal/lockstrategy/redisscript"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/rlock"
)

func fencedEntry() Entry {
	return Entry{
		Name: "fenced", Family: redisHistory,
		Summary: "redisson + a token from the same script, UPDATE ... WHERE fence < ?",
		Guarantees: "no write of a holder that was overtaken, however long it was paused and whatever Redis forgot: it gets lock_lost, and nothing is written. " +
			"The lock only spares the losers their work",
		BreaksWhen: "never; the late holder gets lock_lost",
		HowItBreaks: "It holds while all that writes the product shows tokens of one source. " +
			"A Redis that forgets the counter costs one buyer lock_lost, and that buyer raises the counter above what the database has seen.",
		Cost:    "as redisson, and one more update to the database",
		Source:  `Kleppmann, "How to do distributed locking", 2016, "Making the lock safe with fencing"; org.redisson.RedissonFencedLock`,
		Notes:   "A buyer first raises product.fence to its token, then reads, then writes while the fence is still its own. Why the token must be shown before the read: Section.SellFenced.",
		Needs:   []Need{NeedsRedis},
		Scripts: redisscript.Rlock(),
		New:     func(d Deps) purchase.Strategy { return NewFenced(d) },
		Traits: Traits{
			Path:   sizing.Path{SQL: 6, Lock: 2, RowSQL: 2, Keeps: sizing.All, TurnSQL: 6, TurnLock: 1, TurnCommits: 2, Nodes: sizing.ByKey},
			Leased: true, InMemory: true, Confirms: true, WaitsFor: ALock,
			Lock: LockPromise{Renewed: true, SharedUnder: []promise.Condition{
				promise.Pause, promise.RedisRestart, promise.RedisFailover, promise.PrimaryPartition, promise.ClockJump,
			}},
		},
	}.holds()
}

// NewFenced needs the database and one Redis. Close it when it is not needed any
// more: it listens.
func NewFenced(d Deps) *Locked {
	return lease.NewFenced(d, "fenced", fencedLocker{newRlockLocker(d, "fenced", (*rlock.Client).NewFencedLock)})
}

type fencedLocker struct{ *rlockLocker }

// RaiseToken is tokenSource.RaiseToken.
func (f fencedLocker) RaiseToken(ctx context.Context, product string, atLeast int64) error {
	return f.of(product).RaiseToken(ctx, atLeast)
}
