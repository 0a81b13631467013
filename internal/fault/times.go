package fault

import (
	"slices"
	"time"

	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// Times of the shops under test.
type Times struct {
	Wait  time.Duration // of a buyer
	Lease time.Duration
}

// DefaultTimes are those of the shops under a fault. The lease is the shortest
// that etcd grants. The wait is well above Reach, so that the holder's own wait
// does not end while it is stopped.
func DefaultTimes() Times { return Times{Wait: 7 * time.Second, Lease: 2 * time.Second} }

// longLease is the lease where Redis must serve again in half of one: a failover takes two or
// three seconds, and a node of a cluster takes no writes for two after its start.
const longLease = 20 * time.Second

// TimesOf are those of the shops under a fault: t, or longer ones.
func (t Times) TimesOf(f Fault, localRedis string) Times {
	if f.Lease > 0 && localRedis != "" && localRedis != topology.Single {
		return Times{Wait: f.Lease + 15*time.Second, Lease: f.Lease}
	}
	return t
}

// RushTimes are the shop's own, for the rushes: a lease far above a section.
func RushTimes() Times {
	s := lockstrategy.DefaultSettings()
	return Times{Wait: s.Wait, Lease: s.LeaseTTL}
}

// Reach is the longest time for which a stopped holder waits for another buyer to
// get in: its lease, and the time in which the slowest server sees that the lease
// has expired.
func (t Times) Reach() time.Duration { return 2*t.Lease + 500*time.Millisecond }

// outlast is longer than a lease that is not renewed.
func (t Times) outlast() time.Duration { return t.Lease + t.Lease/4 + 200*time.Millisecond }

// within is a time for which the holder's lease certainly lives: a buyer that gets
// in during it was let in by the fault, and not by the clock.
func (t Times) within() time.Duration { return t.Lease / 2 }

// notice is how long a server may take to see that a client has gone.
const notice = 2 * time.Second

// kept is how long a lock may be kept though nothing is wrong any more: what a process or a
// server that was lost has left is there until its lease ends.
func (t Times) kept(f Fault) time.Duration {
	if f.HolderLives {
		return t.Lease
	}
	return t.Lease + notice
}

// Allowed is how soon another buyer must get on once the holder is gone, or has
// gone on and ended. A lock of the database ends with its connection; one that is
// kept elsewhere ends with its lease. Two seconds are added for a server to notice
// and for a busy machine. Where the holder lives no buyer waits for a lease: what comes
// later than three quarters of one has waited for its end.
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
