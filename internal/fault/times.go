package fault

import (
	"slices"
	"time"

	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// Times are the durations of the shops under test. Conns and Ensembles are here because they add waits for
// a buyer: for a connection of a small pool, or for a majority.
type Times struct {
	Wait      time.Duration // a buyer's maximum wait
	Lease     time.Duration
	Conns     int  // database connections of a shop; 0 means its default
	Ensembles bool // ZooKeeper and etcd have three members each
}

// DefaultTimes are the times of shops under a fault. The lease is the shortest that etcd grants. The wait is
// well above Reach: the holder, which the fault stops for that time, must not reach the end of its own wait.
func DefaultTimes() Times { return Times{Wait: 7 * time.Second, Lease: 2 * time.Second} }

// longLease is the lease for faults after which Redis must serve again within half of the lease. A failover
// takes two or three seconds, and a cluster node takes no writes for two seconds after its start.
const longLease = 20 * time.Second

// TimesOf returns t with the settings of the fault. The fault may need a longer lease and wait.
func (t Times) TimesOf(f Fault, localRedis string) Times {
	t.Conns, t.Ensembles = f.Conns, f.Ensembles
	if f.Lease > 0 && (f.Ensembles || localRedis != "" && localRedis != topology.Single) {
		t.Lease = max(t.Lease, f.Lease)
		t.Wait = max(t.Wait, t.Lease+15*time.Second)
	}
	return t
}

// RushTimes are the times of shops in a rush (burst of buyers), the defaults of a shop. The lease is far
// longer than a critical section.
func RushTimes() Times {
	s := lockstrategy.DefaultSettings()
	return Times{Wait: s.Wait, Lease: s.LeaseTTL}
}

// Reach is how long the holder stays stopped at most while the fault waits for another buyer to get its lock.
// It covers the holder's lease, and the time until the slowest server notices that the lease has expired.
func (t Times) Reach() time.Duration { return 2*t.Lease + 500*time.Millisecond }

// outlast returns a time that is longer than an unrenewed lease.
func (t Times) outlast() time.Duration { return t.Lease + t.Lease/4 + 200*time.Millisecond }

// within returns a time in which the holder's lease certainly does not end. If another buyer gets the lock in
// this time, the cause is the fault and not the end of the lease.
func (t Times) within() time.Duration { return t.Lease / 2 }

// notice is how long a server may take to notice that a client has gone.
const notice = 2 * time.Second

// kept is how long a lock may still be held after the fault although the shop works correctly. The lock of a
// lost process or server stays until its lease ends.
func (t Times) kept(f Fault) time.Duration {
	if f.HolderLives {
		return t.Lease
	}
	return t.Lease + notice
}

// Allowed is the time within which another buyer must be served after the holder has finished or was killed. A
// database lock ends with its connection, any other lock with its lease. Allowed adds two seconds for a server
// to notice and for a busy machine. If the holder lives, it releases its lock, so no buyer has to wait for a
// lease to end. Then Allowed is three quarters of a lease.
func (t Times) Allowed(f Fault, needs []lockstrategy.Need) time.Duration {
	if f.HolderLives {
		return t.Lease * 3 / 4
	}
	elsewhere := func(n lockstrategy.Need) bool {
		return n != lockstrategy.NeedsNamedLocks && n != lockstrategy.NeedsSkipLocked
	}
	if !slices.ContainsFunc(needs, elsewhere) {
		return notice
	}
	return t.Lease + notice
}
