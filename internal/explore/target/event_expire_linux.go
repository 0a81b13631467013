package target

import (
	"context"
	"fmt"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// expire deletes every Redis key with a time to live, and no lock holder notices it. A holder that pauses, or a slow
// critical section, has the same effect. Without this event, no lease expires during a run, see backend.Backend.After.
func (e events) expire(ctx context.Context) ([]move, error) {
	if e.programs.Backends["redis"] == nil {
		return nil, nil
	}
	leases, err := e.programs.Servers.Redis().Leases(ctx)
	if err != nil || leases == 0 {
		return nil, err
	}
	return []move{{
		Choice: schedule.Choice{Token: "expire", Name: "expire", Touches: "redis", Global: true},
		Text:   fmt.Sprintf("all leases expire (%d)", leases),
		Make:   func(ctx context.Context) error { _, err := e.programs.Servers.Redis().Expire(ctx); return err },
	}}, nil
}
