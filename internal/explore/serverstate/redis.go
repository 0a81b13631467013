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

// Redis is one server as the explorer sees it. The keys that were named on it are
// what a run can have left there; others' are not touched.
type Redis struct {
	Name  string // "redis", "redlock-1" ...
	admin *redis.Client
	named named

	looked bool // no command was let through to it since
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

// Touch notes that a command is let through to the server.
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

// Notify wakes the listeners for the release of a lock, and returns how many
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

// A Key is one of the named keys that is there.
type Key struct {
	Name  string
	Value string        // all of it, the members of a set or hash in order
	TTL   time.Duration // 0: it does not run out
}

// Held are the named keys that are there, in the order of their names. It asks the
// server only when a command was let through to it since the last time.
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

// look asks for keys in one round trip. A key's command depends on what kind it is:
// one that was of another kind the last time is to be asked for again.
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

// isReply: the server has answered, if only that a key is of another kind.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// valueOf asks for all of a key's value.
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

// text is an answer of valueOf.
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

// Renewed reports whether the lease was renewed since it aged.
func (l Lease) Renewed() bool { return l.Left > schedule.Forever*5/6 }

// End deletes the key.
func (l Lease) End(ctx context.Context) error {
	l.Server.Touch()
	return l.Server.admin.Del(ctx, l.Key).Err()
}

// Age lets a third of a TTL pass.
func (l Lease) Age(ctx context.Context) error {
	if l.ByClock {
		return nil // its holder's clock decides, and it is not renewed
	}
	l.Server.Touch()
	return l.Server.admin.PExpire(ctx, l.Key, max(time.Millisecond, l.Left-schedule.Forever/3)).Err()
}
