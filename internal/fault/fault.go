// Package fault injects faults into running shops: it kills and stops processes, restarts servers,
// and cuts connections. Each fault is one file and one line in All.
//
// Every fault can be injected into a Testbed: a cell of `shop verify`, with two shops and servers of their
// own, and few buyers. A fault with InRush can also be injected into a RunningRush. A rush is a burst of many
// buyers that a command or the live page sends to shops on the engine's servers.
//
// In most faults, a buyer of the first process, the holder, is stopped while it has the lock. The fault is
// injected, other buyers buy, and the holder continues. At the end the damage is repaired.
//
// A fault proves that it took effect, or returns ErrMissed. It proves nothing if, for example, the buyer did
// not hold the lock, or a restarted server kept its data. Faults do not judge the sales: internal/judge/verify
// and internal/load/rush do.
package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// ErrMissed means that the fault did not take effect. The error's text says why.
var ErrMissed = errors.New("the fault did not take effect")

func missed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMissed, fmt.Sprintf(format, args...))
}

// A Fault is one way to break a shop or its servers.
type Fault struct {
	// Name names the fault in the matrix, in --fault and in --strike. It consists of words joined by "-".
	Name promise.Condition
	// Inject injects the fault into a cell. It returns the proof that the fault took effect, or an ErrMissed
	// with the reason. It passes its repairs to Field.afterwards.
	Inject func(ctx context.Context, t *Testbed) (proof string, err error)
	// InRush is Inject for a running rush. Nil: the fault applies only to cells.
	InRush func(ctx context.Context, r *RunningRush) (proof string, err error)

	// About describes the fault, in one line without a full stop.
	About string
	// Needs limits the fault to strategies that need one of these servers. Empty: no limit.
	Needs []lockstrategy.Need
	// On limits the fault to databases with this dialect. Empty: no limit.
	On string
	// OnRedis limits the fault to this Redis topology, one of package topology. Empty: no limit.
	OnRedis string
	// Lease is the shops' lease if the lock server consists of several servers. A fault then takes seconds,
	// and the lease must be longer, such as longLease or electionLease. 0 means the default lease.
	Lease time.Duration
	// Ensembles means that ZooKeeper and etcd run with three members each. Otherwise each has one member,
	// which starts sooner.
	Ensembles bool
	// Conns is the number of database connections of each shop. 0 means the shop's default.
	Conns int
	// Stock is the stock of a cell: enough for the buyers of the fault and for a burst afterwards.
	Stock int64
	// HolderLives means that no process ends and no server is lost. The holder releases its lock when its
	// purchase ends, so no buyer has to wait for a lease to expire.
	HolderLives bool

	// TwoProcesses means that in a running rush the fault takes effect only if there is a second process.
	TwoProcesses bool
	// Standby means that a running rush needs a Standby, a replica of Redis, before the buyers come.
	Standby bool
	// Lacks says why the engine of a running rush does not support the fault, or returns "". Nil:
	// every engine supports it.
	Lacks func(e *engine.Engine) string
}

// All lists the faults in display order. `make generate` writes their names to internal/judge/promise: the
// catalogue of strategies promises an outcome under each fault (TestConditions).
func All() []Fault {
	return []Fault{
		crash(),
		pause(),
		slowSection(),
		shortLease(),
		clientGone(),
		connections(),
		redisRestart(),
		redisFailover(),
		primaryPartition(),
		slotMigration(),
		clusterDown(),
		nodeRestart(),
		nodesDown(),
		clockJump(),
		clientClock(),
		latency(),
		partition(),
		releaseCut(),
		serverHang(),
		successiveFailures(),
		leaderKill(),
		leaseRevoked(),
		commitAnswerLost(),
		dbKill(),
		dbFailover(),
		dbFailoverAsync(),
		poolerRestart(),
		dbNodeKill(),
		dbNodeFreeze(),
		dbNodeCut(),
		dbNodeRejoin(),
		dbNodeLag(),
		dbClusterRestart(),
	}
}

// OfRush lists the faults that can be injected into running rushes, in display order.
func OfRush() (faults []Fault) {
	for _, f := range All() {
		if f.InRush != nil {
			faults = append(faults, f)
		}
	}
	return faults
}

// OnEngine lists the faults that can be injected into running rushes on the engine.
func OnEngine(e *engine.Engine) (faults []Fault) {
	for _, f := range OfRush() {
		if f.WhyNot(e) == "" {
			faults = append(faults, f)
		}
	}
	return faults
}

// WhyNot says why the fault cannot be injected into a rush on the engine, or returns "".
func (f Fault) WhyNot(e *engine.Engine) string {
	if f.Lacks == nil {
		return ""
	}
	return f.Lacks(e)
}

// Unused says why the fault does not affect a strategy with these needs, or returns "". The matrix
// skips the cell if there is a reason.
func (f Fault) Unused(needs []lockstrategy.Need) string {
	if lockstrategy.Affects(f.Name, needs) {
		return ""
	}
	return fmt.Sprintf("%s affects only strategies that use %s", f.Name, strings.Join(promise.Struck(f.Name), " or "))
}

const stock = 24

func redisAlone() []lockstrategy.Need   { return []lockstrategy.Need{lockstrategy.NeedsRedis} }
func redlockNodes() []lockstrategy.Need { return []lockstrategy.Need{lockstrategy.NeedsRedlock} }
func lockServers() []lockstrategy.Need {
	return []lockstrategy.Need{
		lockstrategy.NeedsRedis, lockstrategy.NeedsRedlock, lockstrategy.NeedsZookeeper, lockstrategy.NeedsEtcd,
	}
}

// ownRedis returns the Redis that the engine has started, or nil if there is none or several.
func ownRedis(e *engine.Engine) (own engine.Restartable) {
	for _, s := range e.LockServers {
		if s.Need != string(lockstrategy.NeedsRedis) {
			continue
		}
		if own != nil {
			return nil
		}
		own = s.Restartable
	}
	return own
}

// lacksRedis implements Fault.Lacks for faults that restart one Redis.
func lacksRedis(e *engine.Engine) string {
	if ownRedis(e) == nil {
		return "Redis is not the engine's own, or several servers"
	}
	return ""
}
