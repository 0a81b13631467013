package fault

import (
	"context"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/failpoint"
	"github.com/oversell/oversell/internal/history"
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
			before, err := lock.holder(ctx, t.Product)
			if err != nil {
				return "", err
			}
			if err := lock.revoke(ctx, before); err != nil {
				return "", err
			}
			t.struck("%s was revoked", before.lease())
			revoked := time.Now()
			gone, err := lock.gone(ctx, before)
			if err != nil {
				return "", err
			}
			sendNext(ctx, t, t.Times.reach())
			t.seen(ctx, time.Until(revoked.Add(t.Times.reach())), holder, history.Answered, history.Resumed)
			alive := t.A.alive(ctx, t.Times.Wait)
			_, ended := t.seen(ctx, time.Millisecond, holder, history.Resumed)
			if err := t.release(); err != nil {
				return "", err
			}
			return revokedFrom(before, gone, alive, !ended)
		},
	}
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
	for _, need := range needs {
		switch {
		case need == lockstrategy.NeedsEtcd && s.etcd != nil:
			return openEtcdLeases(s.etcd.Addr)
		case need == lockstrategy.NeedsZookeeper && s.zookeeper != nil:
			return openZookeeperSessions(s.zookeeper.Addr)
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
