// Package fault injects faults into running shops: it kills and stops processes, restarts
// servers, and cuts connections. Each fault is one file and one line of All.
//
// A fault is injected into a Field, of which there are two:
//
//	Testbed      a cell of verify: two shops and servers of their own, and few buyers
//	RunningRush  the running rush of a command or of the live page, on the engine's servers
//
// In both, a buyer of the first process is stopped where it holds, the fault is injected,
// others buy, and the buyer goes on. The field then puts right what the fault broke.
//
// A fault proves that it took effect, or returns ErrMissed: an injection in which the buyer
// did not hold, or the server did not forget, has shown nothing. The package does not judge;
// internal/judge/verify and internal/load/rush do.
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

// ErrMissed: the fault did not take effect. The error's text says why.
var ErrMissed = errors.New("the fault did not strike")

func missed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMissed, fmt.Sprintf(format, args...))
}

// A Fault is one way to break a shop or its servers.
type Fault struct {
	// Name is the column of the matrix, and what --fault and --strike take: words joined by "-".
	Name promise.Condition
	// Inject breaks something and returns the proof that it took effect; an error that is
	// ErrMissed says why it did not. What it breaks it repairs, see Field.afterwards.
	Inject func(ctx context.Context, f Field) (proof string, err error)

	// About is what it does in a cell, in a line without a full stop.
	About string
	// Needs says which strategies it affects: those that need one of these servers.
	// Empty: every strategy.
	Needs []lockstrategy.Need
	// On is the dialect of the databases that it breaks. Empty: every one.
	On string
	// OnRedis is the topology of the Redis that it breaks, of package topology. Empty: every one.
	OnRedis string
	// Lease is that of the shops where Redis is several servers, which take seconds to serve
	// again: see longLease. 0: that of the other faults.
	Lease time.Duration
	// Stock is what is on sale in a cell: enough for the buyers of the fault and for a crowd
	// afterwards.
	Stock int64
	// HolderLives: no process ends and no server is lost. What a buyer held is free as soon
	// as its buy has ended, and no buyer has to wait for a lease.
	HolderLives bool

	// CellOnly says why the fault is not injected into a running rush. Empty: it is.
	CellOnly string
	// AboutRush is what it does in a running rush, in a line without a full stop.
	AboutRush string
	// TwoProcesses: it takes effect in a running rush only where another process goes on.
	TwoProcesses bool
	// Lacks says what the engine of a running rush lacks for it; "" where it lacks nothing.
	// Nil: no engine lacks anything.
	Lacks func(e *engine.Engine) string
}

// All lists the faults in display order. `make generate` writes them into
// internal/judge/promise, which the catalogue makes its promises in: TestConditions.
func All() []Fault {
	return []Fault{
		crash(),
		pause(),
		slowSection(),
		clientGone(),
		redisRestart(),
		redisFailover(),
		primaryPartition(),
		slotMigration(),
		clusterDown(),
		nodeRestart(),
		nodesDown(),
		clockJump(),
		latency(),
		partition(),
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

// OfRush lists the faults that are injected into running rushes, in display order.
func OfRush() (faults []Fault) {
	for _, f := range All() {
		if f.CellOnly == "" {
			faults = append(faults, f)
		}
	}
	return faults
}

// OnEngine lists the faults that are injected into running rushes on that engine.
func OnEngine(e *engine.Engine) (faults []Fault) {
	for _, f := range OfRush() {
		if f.WhyNot(e) == "" {
			faults = append(faults, f)
		}
	}
	return faults
}

// WhyNot says why the fault cannot be injected into a rush on the engine; "" where it can.
func (f Fault) WhyNot(e *engine.Engine) string {
	if f.Lacks == nil {
		return ""
	}
	return f.Lacks(e)
}

// Unused says why the fault does not affect a strategy with these needs; "" where it does.
// It is the rule by which the matrix leaves a cell out.
func (f Fault) Unused(needs []lockstrategy.Need) string {
	if lockstrategy.Strikes(f.Name, needs) {
		return ""
	}
	return fmt.Sprintf("%s strikes only what uses %s", f.Name, strings.Join(promise.Struck(f.Name), " or "))
}

// inCell is the injection of a fault that is CellOnly.
func inCell(cell func(ctx context.Context, t *Testbed) (string, error)) func(context.Context, Field) (string, error) {
	return either(cell, nil)
}

// either is the injection of a fault that a running rush needs another proof of.
func either(cell func(ctx context.Context, t *Testbed) (string, error), rush func(ctx context.Context, r *RunningRush) (string, error)) func(context.Context, Field) (string, error) {
	return func(ctx context.Context, f Field) (string, error) {
		if r, ok := f.(*RunningRush); ok {
			return rush(ctx, r)
		}
		return cell(ctx, f.(*Testbed))
	}
}

// stock is enough for most faults.
const stock = 24

// What some faults break, for Fault.Needs.
func redisAlone() []lockstrategy.Need   { return []lockstrategy.Need{lockstrategy.NeedsRedis} }
func redlockNodes() []lockstrategy.Need { return []lockstrategy.Need{lockstrategy.NeedsRedlock} }
func lockServers() []lockstrategy.Need {
	return []lockstrategy.Need{
		lockstrategy.NeedsRedis, lockstrategy.NeedsRedlock, lockstrategy.NeedsZookeeper, lockstrategy.NeedsEtcd,
	}
}

// lacksLockServers is Fault.Lacks of what stands between the shops and their lock servers.
func lacksLockServers(e *engine.Engine) string {
	if len(e.LockServers) == 0 {
		return "the lock servers are not the engine's own: it has not started them"
	}
	return ""
}

// startedServers are those of one need that the engine has started.
func startedServers(e *engine.Engine, need lockstrategy.Need) (servers []engine.LockServer) {
	for _, s := range e.LockServers {
		if s.Need == string(need) {
			servers = append(servers, s)
		}
	}
	return servers
}
