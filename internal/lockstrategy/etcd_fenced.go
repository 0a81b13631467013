// etcd-fenced: etcd, and the database refuses who comes late. The create
// revision of the lock's key is the fencing token: a buyer first raises
// product.fence to its own, UPDATE ... WHERE fence < ?, then reads, then
// writes WHERE fence = ?.
//
// Guarantees:  no write of a holder that was overtaken, however long it was
//              paused: it gets lock_lost, and nothing is written. The lock only
//              spares the losers their work.
// Breaks when: never, while all that writes the product shows tokens of one
//              source. Tokens of two, of etcd and of Redis for one, shut each
//              other out: lock_lost for whoever has the lower ones. A restock
//              begins at fence 0, for any source; a writer from before it stays
//              refused, since its token has not sealed the product any more.
// Cost:        as etcd, and one more update to the database.
// Source:      Kleppmann, "How to do distributed locking", 2016, "Making the
//              lock safe with fencing"; that the token must be there before the
//              read: Section.SellFenced in internal/purchase.

package lockstrategy

// NewEtcdFenced needs the database and etcd.
func NewEtcdFenced(d Deps) *Locked {
	return newFenced(d, "etcd-fenced", newEtcdLocker(d, "etcd-fenced"))
}
