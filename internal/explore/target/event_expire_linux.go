package target

import (
	"context"
	"fmt"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// expireEvent: every key with a time to live goes at once, and its holder does not notice: a
// pause, or a section that takes longer. By themselves leases do not run out during a run,
// see redisBackend.after.
type expireEvent struct{}

func (expireEvent) name() schedule.Event { return schedule.Expire }

func (e expireEvent) choices(ctx context.Context, r *run) ([]action, error) {
	if r.x.backends["redis"] == nil {
		return nil, nil
	}
	leases, err := r.x.servers.Redis().Leases(ctx)
	if err != nil || leases == 0 {
		return nil, err
	}
	return []action{{
		Choice: schedule.Choice{Token: "expire", Name: "expire", Touches: "redis"},
		note:   fmt.Sprintf("every lease runs out: %d of them", leases),
	}}, nil
}

func (expireEvent) strike(ctx context.Context, r *run, _ action) error {
	_, err := r.x.servers.Redis().Expire(ctx)
	return err
}
