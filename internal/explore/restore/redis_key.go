package restore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Key is one of the named keys that is there.
type Key struct {
	Name  string
	Value string        // all of it, the members of a set or hash in order
	TTL   time.Duration // 0: it does not run out
}

// Held are the named keys that are there, in the order of their names. It asks the
// server only when somebody was let near it since the last time.
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
