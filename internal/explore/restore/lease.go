package restore

import (
	"context"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// A Lease is a key that will run out: by its TTL, or by a time in it that the
// buyers' clock is compared with.
type Lease struct {
	Server  *Redis
	Key     string
	Left    time.Duration
	ByClock bool
}

// Leases are those on the server that have not run out. now is the buyers' time.
func (s *Redis) Leases(ctx context.Context, now time.Time) (found []Lease, _ error) {
	for _, key := range s.Keys() {
		ttl, err := s.admin.PTTL(ctx, key).Result()
		if err != nil {
			return nil, fmt.Errorf("look at %s: %w", s.Name, err)
		}
		switch {
		case ttl > 0:
			found = append(found, Lease{s, key, ttl, false})
		case ttl == -1: // no TTL
			value, _ := s.admin.Get(ctx, key).Int64() // an error: it is no number
			if value > now.UnixMilli() {
				found = append(found, Lease{s, key, 0, true})
			}
		}
	}
	return found, nil
}

// Renewed: somebody has renewed it since it aged.
func (l Lease) Renewed() bool { return l.Left > schedule.Forever*5/6 }

// End deletes the key.
func (l Lease) End(ctx context.Context) error { return l.Server.admin.Del(ctx, l.Key).Err() }

// Age lets a third of a TTL pass.
func (l Lease) Age(ctx context.Context) error {
	if l.ByClock {
		return nil // its holder's clock says, and nobody renews it
	}
	return l.Server.admin.PExpire(ctx, l.Key, max(time.Millisecond, l.Left-schedule.Forever/3)).Err()
}
