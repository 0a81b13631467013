package fault

import (
	"context"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// leaseRevoked takes the lease away from a holder whose process runs on and can reach
// its servers: an operator revokes it, or ends the session from another connection.
// The holder is between its read and its write for longer than its lease, so its
// client has been told, and its section must end.
func leaseRevoked() Fault {
	return Fault{
		Name: "lease-revoked", About: "the coordinator takes the lease away from a process that runs on",
		Needs: []lockstrategy.Need{lockstrategy.NeedsZookeeper, lockstrategy.NeedsEtcd}, Stock: stock,
		Strike: func(ctx context.Context, t *Testbed) (string, error) {
			if err := t.hold(ctx, failpoint.Read, t.Times.Wait); err != nil {
				return "", err
			}
			lock, err := t.Servers.coordinator(t.Subject.Needs)
			if err != nil {
				return "", err
			}
			defer lock.close()
			var revoked time.Time
			before, gone, err := revoke(ctx, lock, t.Product, func(p place) {
				t.struck("%s was revoked", p.lease())
				revoked = time.Now()
			})
			if err != nil {
				return "", err
			}
			sendNext(ctx, t, t.Times.Reach())
			t.seen(ctx, time.Until(revoked.Add(t.Times.Reach())), holder, history.Answered, history.Resumed)
			alive := t.A.Answers(ctx, t.Times.Wait)
			_, ended := t.seen(ctx, time.Millisecond, holder, history.Resumed)
			if err := t.release(); err != nil {
				return "", err
			}
			return revokedFrom(before, gone, alive, !ended)
		},
	}
}

// Revoke takes the lease away from the first in the product's line, at whichever of the servers
// is needed, and proves it.
func Revoke(ctx context.Context, servers []engine.LockServer, needs []lockstrategy.Need, product string) (proof string, _ error) {
	there := map[lockstrategy.Need]string{}
	for _, s := range servers {
		there[lockstrategy.Need(s.Need)] = s.Address()
	}
	lock, err := coordinatorOf(needs, there)
	if err != nil {
		return "", err
	}
	defer lock.close()
	before, gone, err := revoke(ctx, lock, product, func(place) {})
	switch {
	case err != nil:
		return "", err
	case !gone:
		return "", missed("the %s was there after it was revoked", before.lease())
	}
	return fmt.Sprintf("its %s was revoked, and the server knows neither it nor its place in line any more", before.lease()), nil
}

// revoke takes the lease away from the first in the product's line, and calls struck. gone
// reports whether the server has forgotten it.
func revoke(ctx context.Context, lock coordinator, product string, struck func(place)) (before place, gone bool, err error) {
	if before, err = lock.holder(ctx, product); err != nil {
		return before, false, err
	}
	if err = lock.revoke(ctx, before); err != nil {
		return before, false, err
	}
	struck(before)
	gone, err = lock.gone(ctx, before)
	return before, gone, err
}

// A coordinator is a server that knows whose lease a lock is.
type coordinator interface {
	// holder finds the first in the product's line; ErrMissed when nobody is.
	holder(ctx context.Context, product string) (place, error)
	// revoke ends the lease of a place, as an operator would.
	revoke(ctx context.Context, p place) error
	// gone reports whether the server knows neither the lease nor its node any more.
	gone(ctx context.Context, p place) (bool, error)
	close()
}

// A place in a lock's line is a node or key that lives as long as a lease.
type place struct {
	node  string
	owner int64 // the lease, or the session
}

func (p place) lease() string { return fmt.Sprintf("lease %x", uint64(p.owner)) }

// coordinator connects to the one that the strategy needs.
func (s *Servers) coordinator(needs []lockstrategy.Need) (coordinator, error) {
	there := map[lockstrategy.Need]string{}
	if s.etcd != nil {
		there[lockstrategy.NeedsEtcd] = s.etcd.Addr
	}
	if s.zookeeper != nil {
		there[lockstrategy.NeedsZookeeper] = s.zookeeper.Addr
	}
	return coordinatorOf(needs, there)
}

// coordinatorOf connects to the one that is needed, of those that are there by address.
func coordinatorOf(needs []lockstrategy.Need, there map[lockstrategy.Need]string) (coordinator, error) {
	for _, need := range needs {
		switch addr := there[need]; {
		case addr == "":
		case need == lockstrategy.NeedsEtcd:
			return openEtcdLeases(addr)
		case need == lockstrategy.NeedsZookeeper:
			return openZookeeperSessions(addr)
		}
	}
	return nil, missed("no coordinator was there")
}

// revokedFrom is the proof that the server took the lease from a process that was
// alive and in its section.
func revokedFrom(p place, gone, alive, open bool) (proof string, _ error) {
	switch {
	case !gone:
		return "", missed("the %s was there after it was revoked", p.lease())
	case !alive:
		return "", missed("the holder's process did not answer after its lease was revoked")
	case !open:
		return "", missed("the holder had left its section before the strike was over")
	}
	return fmt.Sprintf("the holder reported that it has read; the server knows neither its %s nor its place in line any more; "+
		"its process answered afterwards, and its section was still open", p.lease()), nil
}
