package fault

import (
	"context"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// leaseRevoked revokes the lease of a lock holder whose process runs and reaches its servers. An operator can
// do the same: revoke a lease of etcd, or end a session of ZooKeeper from another connection. The holder is
// stopped between its read and its write for longer than its lease. The server notifies the holder's client of
// the loss, so the holder must not write.
func leaseRevoked() Fault {
	return Fault{
		Name: "lease-revoked", About: "ZooKeeper or etcd revokes the lease of a lock holder while its process runs on",
		Needs: []lockstrategy.Need{lockstrategy.NeedsZookeeper, lockstrategy.NeedsEtcd}, Stock: stock,
		Inject: func(ctx context.Context, t *Testbed) (string, error) {
			if err := holdFor(ctx, t, failpoint.Read, t.Times.Wait); err != nil {
				return "", err
			}
			lock, err := coordinatorOf(t.Subject.Needs, t.coordinators())
			if err != nil {
				return "", err
			}
			defer lock.close()
			lease, gone, err := revoke(ctx, lock, t)
			if err != nil {
				return "", err
			}
			revoked := time.Now()
			t.others(ctx, t.Times.outlast(), t.Times.Reach())
			open := t.staysHeld(ctx, revoked.Add(t.Times.Reach()))
			alive := t.A.Answers(ctx, t.Times.Wait)
			if err := t.release(); err != nil {
				return "", err
			}
			return revokedFrom(lease, gone, alive, open)
		},
	}
}

// coordinators returns the addresses of ZooKeeper and etcd, if they run.
func (t *Testbed) coordinators() map[lockstrategy.Need]string {
	addresses := map[lockstrategy.Need]string{}
	_, servers := t.Servers.lockServers(t.Subject.Needs, t.Times.Ensembles)
	for _, server := range servers {
		addresses[lockstrategy.Need(server.Need)] = server.Address()
	}
	return addresses
}

// revoke revokes the lease of the first entry in the product's queue. `gone` reports whether the server has
// forgotten the lease and the entry.
func revoke(ctx context.Context, lock coordinator, t *Testbed) (first place, gone bool, err error) {
	if first, err = lock.holder(ctx, t.Product); err != nil {
		return first, false, err
	}
	if err = lock.revoke(ctx, first); err != nil {
		return first, false, err
	}
	t.injected("%s was revoked", first.lease())
	gone, err = lock.gone(ctx, first)
	return first, gone, err
}

// A coordinator is a server that knows which client holds each lock.
type coordinator interface {
	// holder returns the first entry in the product's queue, or ErrMissed if the queue is empty.
	holder(ctx context.Context, product string) (place, error)
	// revoke ends the lease of a place, as an operator would.
	revoke(ctx context.Context, p place) error
	// gone reports whether the server has forgotten both the lease and the entry.
	gone(ctx context.Context, p place) (bool, error)
	close()
}

// A place is an entry in a lock's queue: a node of ZooKeeper or a key of etcd. It vanishes when its lease ends.
type place struct {
	node  string
	owner int64 // ID of the lease (etcd) or the session (ZooKeeper)
}

func (p place) lease() string { return fmt.Sprintf("lease %x", uint64(p.owner)) }

// coordinatorOf connects to the server, etcd or ZooKeeper, that the strategy needs. `addresses` has the
// address of each one that runs.
func coordinatorOf(needs []lockstrategy.Need, addresses map[lockstrategy.Need]string) (coordinator, error) {
	for _, need := range needs {
		switch addr := addresses[need]; {
		case addr == "":
		case need == lockstrategy.NeedsEtcd:
			return openEtcdLeases(addr)
		case need == lockstrategy.NeedsZookeeper:
			return openZookeeperSessions(addr)
		}
	}
	return nil, missed("no coordinator was there")
}

// revokedFrom proves that the server took the lease from a live process whose buyer was in its critical section.
func revokedFrom(p place, gone, alive, open bool) (proof string, _ error) {
	switch {
	case !gone:
		return "", missed("the %s was there after it was revoked", p.lease())
	case !alive:
		return "", missed("the holder's process did not answer after its lease was revoked")
	case !open:
		return "", missed("the holder had left its section before the fault was over")
	}
	return fmt.Sprintf("the holder reported that it has read; the server knows neither its %s nor its place in line any more; "+
		"its process answered afterwards, and its section was still open", p.lease()), nil
}
