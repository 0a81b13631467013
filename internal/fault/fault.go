// Package fault strikes a shop for real: processes are killed and stopped,
// servers restarted, connections cut. Each fault is one file and one line of All.
//
//	open: restock, a buyer at each shop
//	strike: a holder at A is stopped where it holds; the fault; next buyers at B; the holder goes on
//	finish: what was broken is mended, and a crowd buys what is left
//
// A fault proves that it struck, or returns ErrMissed: a play in which the holder
// did not hold, or the server did not forget, has shown nothing. The package
// does not judge; internal/judge/verify does.
package fault

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// ErrMissed: the fault did not strike. The error's text says why.
var ErrMissed = errors.New("the fault did not strike")

func missed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMissed, fmt.Sprintf(format, args...))
}

// A Fault is one way to strike.
type Fault struct {
	// Name is the column of the matrix, and what --fault takes: words joined by "-".
	Name promise.Condition
	// About is what it does, in a line without a full stop.
	About string
	// Needs says which strategies it strikes: those that need one of these servers.
	// Empty: every strategy.
	Needs []lockstrategy.Need
	// On is the dialect of the databases that it strikes. Empty: every one.
	On string
	// OnRedis is the topology of the Redis that it strikes, of package topology. Empty: every one.
	OnRedis string
	// Lease is that of the shops where Redis is several servers, which take seconds to serve
	// again: see longLease. 0: that of the other faults.
	Lease time.Duration
	// Stock is what is on sale: enough for the buyers of the strike and for a crowd
	// afterwards.
	Stock int64
	// HolderLives: no process ends and no server is lost. What a buyer held is free as soon
	// as its buy has ended, and nobody has to wait for a lease.
	HolderLives bool
	// Strike does it. proof says how it is known that it was done; an error that is
	// ErrMissed says why it was not. What it breaks it mends, see afterwards.
	Strike func(ctx context.Context, t *Testbed) (proof string, err error)
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
		dbKill(),
		dbFailover(),
		dbFailoverAsync(),
		poolerRestart(),
		dbNodeKill(),
		dbNodeFreeze(),
		dbNodeCut(),
		dbNodeRejoin(),
		dbClusterRestart(),
	}
}

// stock is enough for most faults.
const stock = 24

// What some faults strike, for Fault.Needs.
func redisAlone() []lockstrategy.Need   { return []lockstrategy.Need{lockstrategy.NeedsRedis} }
func redlockNodes() []lockstrategy.Need { return []lockstrategy.Need{lockstrategy.NeedsRedlock} }
func lockServers() []lockstrategy.Need {
	return []lockstrategy.Need{
		lockstrategy.NeedsRedis, lockstrategy.NeedsRedlock, lockstrategy.NeedsZookeeper, lockstrategy.NeedsEtcd,
	}
}
