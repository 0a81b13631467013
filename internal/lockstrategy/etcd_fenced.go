package lockstrategy

import (
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/load/sizing"
	"github.com/oversell/oversell/internal/lockstrategy/lease"
	"github.com/oversell/oversell/internal/purchase"
)

// etcdFenced takes the lock of etcd, whose key has a create revision. The buyer shows it to the
// product's row before it reads, see purchase.Section.SellFenced.
//
//   - Summary: the same, write guarded by the key's create revision as fencing token
//   - Guarantees: no write of a holder that was overtaken, however long it was paused: it gets lock_lost, and
//     nothing is written. The lock only spares the losers their work
//   - Breaks when: never; the late holder gets lock_lost
//   - How it breaks: It holds while all that writes the product shows tokens of one source. Tokens of two sources,
//     etcd and Redis for instance, shut each other out: the lower ones get lock_lost.
//   - Cost: as etcd, and one more update to the database
//   - Source: Kleppmann, "How to do distributed locking", 2016, "Making the lock safe with fencing"
//   - Notes: A buyer first raises product.fence to its own token, then reads, then writes while the fence is still
//     its own. Why the token must be there before the read: Section.SellFenced. A restock begins at fence 0, for
//     any source; a writer from before it stays refused, since its token no longer seals the product.
type etcdFenced struct{ etcdLock }

func newEtcdFenced(d Deps) purchase.Strategy {
	return lease.NewFenced(d, "etcd-fenced", etcdFenced{newEtcdLock(d, "etcd-fenced")})
}

func etcdFencedEntry() Entry {
	return Entry{
		Name: "etcd-fenced", Family: coordination,
		Needs: []Need{NeedsEtcd},
		New:   newEtcdFenced,
		Traits: Traits{
			Uncounted: sizing.Path{Lock: 3, TurnLock: 2},
			Leased:    true, WaitsFor: ALock,
			Lock: LockPromise{Renewed: true, SharedUnder: []promise.Condition{promise.Pause, promise.Partition, promise.LeaseRevoked}},
		},
	}.holds()
}
