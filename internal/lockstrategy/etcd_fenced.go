package lockstrategy

import (
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/lockstrategy/lease"
	"github.com/oversell/oversell/internal/purchase"
)

// etcdFenced takes etcd's lock and uses the create revision of its key as a fencing token: each holder's is
// higher than all earlier ones. The buyer writes the token into the product's row before it reads.
//
//   - Summary: the lock of `etcd`, with the write guarded by the key's create revision as fencing token
//   - Guarantees: A holder that another buyer has overtaken writes nothing and gets `lock_lost`, however
//     long it was paused. The lock only avoids purchases that the token would reject.
//   - Breaks when: never; the late holder gets lock_lost
//   - How it breaks: This is true while all writers of the product use tokens from one source. Tokens from
//     two sources, such as etcd and Redis, are not comparable: buyers with lower ones get `lock_lost`.
//   - Cost: It costs the same as `etcd`, and one more update in the database.
//   - Source: Kleppmann, "How to do distributed locking", 2016, "Making the lock safe with fencing"
//   - Notes: A buyer first raises product.fence to its own token, then reads, and then writes only while
//     the fence still is its token. Section.SellFenced says why the buyer must show the token before the
//     read. A restock sets the fence to 0, for any source. A writer from before the restock stays refused,
//     since the fence no longer is its token.
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
			Leased: true, WaitsFor: WaitLock,
			Lock: LockPromise{Renewed: true, SharedUnder: []promise.Condition{promise.Pause, promise.Partition, promise.LeaseRevoked}},
		},
	}.holds()
}
