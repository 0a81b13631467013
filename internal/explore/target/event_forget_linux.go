package target

import (
	"context"
	"fmt"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// forget deletes all keys of Redis, like a restart without a disk or a failover to an empty replica.
func (e events) forget(ctx context.Context) ([]move, error) {
	if e.programs.Backends["redis"] == nil {
		return nil, nil
	}
	keys, err := e.programs.Servers.Redis().Keys(ctx)
	if err != nil || keys == 0 {
		return nil, err
	}
	return []move{{
		Choice: schedule.Choice{Token: "forget", Name: "forget", Touches: "redis", Global: true},
		Text:   fmt.Sprintf("Redis forgets everything: %d keys", keys),
		Make:   func(ctx context.Context) error { _, err := e.programs.Servers.Redis().Forget(ctx); return err },
	}}, nil
}
