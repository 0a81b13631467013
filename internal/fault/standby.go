package fault

import (
	"context"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// A Standby is a replica of the engine's Redis. In a running rush (a burst of buyers) the fault redis-failover
// promotes this replica. It starts when it is needed.
type Standby struct{ redisServers }

// NewStandby returns a standby of the engine's Redis, and does not start it yet.
func NewStandby(e *engine.Engine) *Standby {
	s := &Standby{}
	if own, ok := ownRedis(e).(*localserver.Redis); ok {
		s.redis = &redisNode{own, nil}
	}
	return s
}

// Ready returns when the replica has the data of Redis. A rush calls it before the buyers come. If the replica
// copied the data during a rush, it might copy a held lock and be promoted before it learns of the release.
func (s *Standby) Ready(ctx context.Context) error { return s.replicate(ctx) }

// Close ends the replica.
func (s *Standby) Close() error {
	if s.group == nil {
		return nil
	}
	return s.group.Close()
}
