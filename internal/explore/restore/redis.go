package restore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// Redis is one server as the explorer sees it. The keys that were named on it are
// what a run can have left there; others' are not touched.
type Redis struct {
	Name  string // "redis", "redlock-1" ...
	admin *redis.Client
	named named

	looked bool // nobody has been let near it since
	held   []Key
	kinds  map[string]string // by key: what it was at the last look
}

// NewRedis looks at a server through admin, which Close closes.
func NewRedis(name string, admin *redis.Client) *Redis {
	return &Redis{Name: name, admin: admin, named: named{channels: map[string]string{}}, kinds: map[string]string{}}
}

// named are keys, and the channels on which a lock's waiters listen. Buyers name
// them, from any goroutine.
type named struct {
	mu       sync.Mutex
	keys     []string
	channels map[string]string // by lock
}

// Note notes keys.
func (s *Redis) Note(keys []string) {
	s.named.mu.Lock()
	defer s.named.mu.Unlock()
	for _, key := range keys {
		if !slices.Contains(s.named.keys, key) {
			s.named.keys = append(s.named.keys, key)
		}
	}
}

// Listen notes where a lock's waiters listen.
func (s *Redis) Listen(lock, channel string) {
	s.named.mu.Lock()
	defer s.named.mu.Unlock()
	s.named.channels[lock] = channel
}

// Keys are those named so far, the first one first.
func (s *Redis) Keys() []string {
	s.named.mu.Lock()
	defer s.named.mu.Unlock()
	return slices.Clone(s.named.keys)
}

func (s *Redis) channels() map[string]string {
	s.named.mu.Lock()
	defer s.named.mu.Unlock()
	return maps.Clone(s.named.channels)
}

// Touch notes that somebody was let near the server.
func (s *Redis) Touch() { s.looked = false }

// Clear deletes what runs have named.
func (s *Redis) Clear(ctx context.Context) error {
	s.Touch()
	keys := s.Keys()
	if len(keys) == 0 {
		return nil
	}
	if err := s.admin.Del(ctx, keys...).Err(); err != nil {
		return fmt.Errorf("restore %s: %w", s.Name, err)
	}
	return nil
}

// Notify wakes those who listen for the release of a lock, and returns how many
// they are.
func (s *Redis) Notify(ctx context.Context, lock string) (int, error) {
	channel := s.channels()[lock]
	if channel == "" {
		return 0, nil
	}
	listeners, err := s.admin.Publish(ctx, channel, "0").Result()
	return int(listeners), err
}

// Unheard returns when the server has no listener of a run that has ended: it may
// see the end of a connection late, and would count the listener among those that
// it notifies in the next run.
func (s *Redis) Unheard(ctx context.Context) error {
	channels := slices.Collect(maps.Values(s.channels()))
	if len(channels) == 0 {
		return nil
	}
	for deadline := time.Now().Add(schedule.HangTimeout); ; time.Sleep(50 * time.Microsecond) {
		listeners, err := s.admin.PubSubNumSub(ctx, channels...).Result()
		if err != nil {
			return fmt.Errorf("look at the listeners of %s: %w", s.Name, err)
		}
		if slices.Max(slices.Collect(maps.Values(listeners))) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%w: %s does not see that a listener has gone", schedule.ErrHarness, s.Name)
		}
	}
}

// Admin is the connection that it is looked at through.
func (s *Redis) Admin() *redis.Client { return s.admin }

// Close closes the connection.
func (s *Redis) Close() error { return s.admin.Close() }
