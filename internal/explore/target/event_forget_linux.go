package target

import (
	"context"
	"fmt"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// forgetEvent: Redis loses all its keys: a restart without its disk, a failover to a replica
// that has nothing.
type forgetEvent struct{}

func (forgetEvent) name() schedule.Event { return schedule.Forget }

func (forgetEvent) choices(ctx context.Context, r *run) ([]action, error) {
	if r.x.backends["redis"] == nil {
		return nil, nil
	}
	keys, err := r.x.servers.Redis().Keys(ctx)
	if err != nil || keys == 0 {
		return nil, err
	}
	return []action{{
		Choice: schedule.Choice{Token: "forget", Name: "forget", Touches: "redis"},
		note:   fmt.Sprintf("Redis forgets everything: %d keys", keys),
	}}, nil
}

func (forgetEvent) strike(ctx context.Context, r *run, _ action) error {
	_, err := r.x.servers.Redis().Forget(ctx)
	return err
}
