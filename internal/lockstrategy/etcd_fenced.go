package lockstrategy

import (
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/load/sizing"
	"github.com/oversell/oversell/internal/lockstrategy/lease"
	"github.com/oversell/oversell/internal/purchase"
)

func etcdFencedEntry() Entry {
	return Entry{
		Name: "etcd-fenced", Family: coordination,
		Summary:     "the same, write guarded by the key's create revision as fencing token",
		Guarantees:  "no write of a holder that was overtaken, however long it was paused: it gets lock_lost, and nothing is written. The lock only spares the losers their work",
		BreaksWhen:  "never; the late holder gets lock_lost",
		HowItBreaks: "It holds while all that writes the product shows tokens of one source. Tokens of two sources, etcd and Redis for instance, shut each other out: the lower ones get lock_lost.",
		Cost:        "as etcd, and one more update to the database",
		Source:      `Kleppmann, "How to do distributed locking", 2016, "Making the lock safe with fencing"`,
		Notes: "A buyer first raises product.fence to its own token, then reads, then writes while the fence is still its own. Why the token must be there before the read: Section.SellFenced. " +
			"A restock begins at fence 0, for any source; a writer from before it stays refused, since its token no longer seals the product.",
		Needs: []Need{NeedsEtcd},
		New:   func(d Deps) purchase.Strategy { return NewEtcdFenced(d) },
		Traits: Traits{
			Path:   sizing.Path{SQL: 6, Lock: 3, RowSQL: 2, Keeps: sizing.All, TurnSQL: 6, TurnLock: 2, TurnCommits: 2, Nodes: sizing.OneLeader},
			Leased: true, WaitsFor: ALock,
			Lock: LockPromise{Renewed: true, SharedUnder: []promise.Condition{promise.Pause, promise.Partition, promise.LeaseRevoked}},
		},
	}.holds()
}

// NewEtcdFenced needs the database and etcd.
func NewEtcdFenced(d Deps) *Locked {
	return lease.NewFenced(d, "etcd-fenced", newEtcdLocker(d, "etcd-fenced"))
}
