package serverstate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// Redis is one Redis server, as controlled by the explorer. It records the keys that commands name, which are the only
// keys that a run can leave there. It does not touch other keys.
type Redis struct {
	Name  string // "redis", "redlock-1" ...
	admin *redis.Client
	named named

	looked bool // no command was released to the server since Held last read the keys
	held   []Key
	kinds  map[string]string // by key: its type when it was last read
}

// NewRedis returns the server to which `admin` is connected. Close closes `admin`.
func NewRedis(name string, admin *redis.Client) *Redis {
	return &Redis{Name: name, admin: admin, named: named{channels: map[string]string{}}, kinds: map[string]string{}}
}

// named holds the keys, and for each lock the channel on which its waiters listen. Any goroutine may add to it.
type named struct {
	mu       sync.Mutex
	keys     []string
	channels map[string]string // by lock
}

// Note adds keys.
func (s *Redis) Note(keys []string) {
	s.named.mu.Lock()
	defer s.named.mu.Unlock()
	for _, key := range keys {
		if !slices.Contains(s.named.keys, key) {
			s.named.keys = append(s.named.keys, key)
		}
	}
}

// Listen records the channel on which the waiters for a lock listen.
func (s *Redis) Listen(lock, channel string) {
	s.named.mu.Lock()
	defer s.named.mu.Unlock()
	s.named.channels[lock] = channel
}

// Keys returns the named keys, in the order in which commands first named them.
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

// Touch records that a command is released to the server.
func (s *Redis) Touch() { s.looked = false }

// Clear deletes the keys that runs have named.
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

// Notify wakes the listeners for the release of a lock, and returns their number.
func (s *Redis) Notify(ctx context.Context, lock string) (int, error) {
	channel := s.channels()[lock]
	if channel == "" {
		return 0, nil
	}
	listeners, err := s.admin.Publish(ctx, channel, "0").Result()
	return int(listeners), err
}

// Unheard waits until the server has no listener from an earlier run. The server may notice the end of a
// connection late, and would otherwise count its listener in the next run.
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

// Admin returns the connection of the explorer.
func (s *Redis) Admin() *redis.Client { return s.admin }

// Close closes the connection.
func (s *Redis) Close() error { return s.admin.Close() }

// A Key is a named key that exists on the server.
type Key struct {
	Name  string
	Value string        // complete; members of a set or hash are sorted
	TTL   time.Duration // 0: it does not expire
}

// Held returns the named keys that exist, sorted by name. It queries the server only if a command was released to it
// since the last call.
func (s *Redis) Held(ctx context.Context) ([]Key, error) {
	if s.looked {
		return s.held, nil
	}
	names := s.Keys()
	slices.Sort(names)
	s.held = s.held[:0:0]
	for len(names) > 0 {
		again, err := s.look(ctx, names)
		if err != nil {
			return nil, fmt.Errorf("look at %s: %w", s.Name, err)
		}
		names = again
	}
	slices.SortFunc(s.held, func(a, b Key) int { return strings.Compare(a.Name, b.Name) })
	s.looked = true
	return s.held, nil
}

// look reads keys in one round trip, with a command for the type of each key. It returns the keys whose type has
// changed, which must be read again.
func (s *Redis) look(ctx context.Context, names []string) (again []string, _ error) {
	type answer struct {
		kind  *redis.StatusCmd
		ttl   *redis.DurationCmd
		value redis.Cmder
	}
	answers := make([]answer, len(names))
	_, err := s.admin.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, name := range names {
			answers[i] = answer{p.Type(ctx, name), p.PTTL(ctx, name), valueOf(ctx, p, s.kinds[name], name)}
		}
		return nil
	})
	if err != nil && !isReply(err) {
		return nil, err
	}
	for i, a := range answers {
		name, kind := names[i], a.kind.Val()
		switch {
		case kind == "none":
		case kind != s.kinds[name]:
			s.kinds[name] = kind
			again = append(again, name)
		default:
			s.held = append(s.held, Key{name, text(a.value), max(0, a.ttl.Val())})
		}
	}
	return again, nil
}

// isReply reports whether the server has answered, even with an error about the type of a key.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

func valueOf(ctx context.Context, p redis.Pipeliner, kind, name string) redis.Cmder {
	switch kind {
	case "hash":
		return p.HGetAll(ctx, name)
	case "set":
		return p.SMembers(ctx, name)
	case "list":
		return p.LRange(ctx, name, 0, -1)
	case "zset":
		return p.ZRangeWithScores(ctx, name, 0, -1)
	case "stream":
		return p.XRange(ctx, name, "-", "+")
	}
	return p.Get(ctx, name)
}

func text(value redis.Cmder) string {
	switch v := value.(type) {
	case *redis.MapStringStringCmd:
		var members []string
		for _, name := range slices.Sorted(maps.Keys(v.Val())) {
			members = append(members, name+"="+v.Val()[name])
		}
		return strings.Join(members, " ")
	case *redis.StringSliceCmd:
		members := slices.Clone(v.Val())
		if v.Name() == "smembers" {
			slices.Sort(members)
		}
		return strings.Join(members, " ")
	case *redis.ZSliceCmd:
		return fmt.Sprint(v.Val())
	case *redis.XMessageSliceCmd:
		return fmt.Sprint(v.Val()) // fmt sorts the members of a map
	case *redis.StringCmd:
		return v.Val()
	}
	return ""
}

// A Lease is a key that will expire: by its TTL, or by a time in its value for the buyers' clock.
type Lease struct {
	Server  *Redis
	Key     string
	Left    time.Duration
	ByClock bool
}

// Leases returns the unexpired leases on the server. The parameter `now` is the time of the buyers' clock.
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
		until, _ := strconv.ParseInt(key.Value, 10, 64) // an error means that the value is not a number
		if until > now.UnixMilli() {
			found = append(found, Lease{s, key.Name, 0, true})
		}
	}
	return found, nil
}

// Renewed reports whether the lease was renewed since Age shortened it.
func (l Lease) Renewed() bool { return l.Left > schedule.Forever*5/6 }

// End deletes the key.
func (l Lease) End(ctx context.Context) error {
	l.Server.Touch()
	return l.Server.admin.Del(ctx, l.Key).Err()
}

// Age shortens the TTL by a third of schedule.Forever.
func (l Lease) Age(ctx context.Context) error {
	if l.ByClock {
		return nil // the time in the value decides, and the holder never renews it
	}
	l.Server.Touch()
	return l.Server.admin.PExpire(ctx, l.Key, max(time.Millisecond, l.Left-schedule.Forever/3)).Err()
}
