package target

import (
	"context"
	"fmt"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// forget has Redis lose all its keys: a restart without its disk, a failover to a replica that
// has nothing.
func (e events) forget(ctx context.Context) ([]move, error) {
	if e.x.backends["redis"] == nil {
		return nil, nil
	}
	keys, err := e.x.servers.Redis().Keys(ctx)
	if err != nil || keys == 0 {
		return nil, err
	}
	return []move{{
		Choice: schedule.Choice{Token: "forget", Name: "forget", Touches: "redis", Global: true},
		Text:   fmt.Sprintf("Redis forgets everything: %d keys", keys),
		Make:   func(ctx context.Context) error { _, err := e.x.servers.Redis().Forget(ctx); return err },
	}}, nil
}
