package restore

import (
	"context"
	"strconv"
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
	held, err := s.Held(ctx)
	if err != nil {
		return nil, err
	}
	for _, key := range held {
		if key.TTL > 0 {
			found = append(found, Lease{s, key.Name, key.TTL, false})
			continue
		}
		until, _ := strconv.ParseInt(key.Value, 10, 64) // an error: it is no number
		if until > now.UnixMilli() {
			found = append(found, Lease{s, key.Name, 0, true})
		}
	}
	return found, nil
}

// Renewed: somebody has renewed it since it aged.
func (l Lease) Renewed() bool { return l.Left > schedule.Forever*5/6 }

// End deletes the key.
func (l Lease) End(ctx context.Context) error {
	l.Server.Touch()
	return l.Server.admin.Del(ctx, l.Key).Err()
}

// Age lets a third of a TTL pass.
func (l Lease) Age(ctx context.Context) error {
	if l.ByClock {
		return nil // its holder's clock says, and nobody renews it
	}
	l.Server.Touch()
	return l.Server.admin.PExpire(ctx, l.Key, max(time.Millisecond, l.Left-schedule.Forever/3)).Err()
}
