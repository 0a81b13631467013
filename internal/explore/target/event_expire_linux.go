package target

import (
	"context"
	"fmt"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// expire deletes every key with a time to live, and its holder does not notice: a pause, or a
// section that takes longer. By themselves leases do not expire during a run, see
// redisBackend.after.
func (e events) expire(ctx context.Context) ([]move, error) {
	if e.x.backends["redis"] == nil {
		return nil, nil
	}
	leases, err := e.x.servers.Redis().Leases(ctx)
	if err != nil || leases == 0 {
		return nil, err
	}
	return []move{{
		Choice: schedule.Choice{Token: "expire", Name: "expire", Touches: "redis", Global: true},
		Text:   fmt.Sprintf("every lease runs out: %d of them", leases),
		Make:   func(ctx context.Context) error { _, err := e.x.servers.Redis().Expire(ctx); return err },
	}}, nil
}
