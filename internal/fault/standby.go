package fault

import (
	"context"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// A Standby is a replica of the engine's Redis, to which redis-failover fails over in a running
// rush. It starts when it is needed.
type Standby struct{ redisServers }

// NewStandby returns a standby of the engine's Redis. It is not started.
func NewStandby(e *engine.Engine) *Standby {
	s := &Standby{}
	if own, ok := ownRedis(e).(*localserver.Redis); ok {
		s.redis = &redisNode{own, nil}
	}
	return s
}

// Ready returns when the replica has the data of Redis. A rush calls it before the buyers come. A
// replica that copies the data during a rush may copy a held lock, and be promoted before it learns of the release.
func (s *Standby) Ready(ctx context.Context) error { return s.replicate(ctx) }

// Close ends the replica.
func (s *Standby) Close() error {
	if s.group == nil {
		return nil
	}
	return s.group.Close()
}
