package app

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Leases of a run end by an event, and by no clock: each key with a time to live gets so much
// again after each change. It is as short as that allows, since it is what stays in a user's own
// server when the explorer is killed; in a run that goes on for so long without a change a key
// may expire, and Expired tells.
const stretched = 2 * time.Minute

// Scripts see every database number that has a key, as INFO keyspace names them, and not
// only the one that the program's URL names: it may SELECT another.
const everyDatabase = `
local n = 0
for db in string.gmatch(redis.call('INFO', 'keyspace'), 'db(%d+):') do
  redis.call('SELECT', db)
  for _, key in ipairs(redis.call('KEYS', '*')) do
    local left = redis.call('PTTL', key)
    `

var (
	stretch = redis.NewScript(everyDatabase + `if left >= 0 and left < tonumber(ARGV[1]) / 2 then redis.call('PEXPIRE', key, ARGV[1]); n = n + 1 end
  end
end
return n`)
	leases = redis.NewScript(everyDatabase + `if left >= 0 then n = n + 1 end
  end
end
return n`)
	expire = redis.NewScript(everyDatabase + `if left >= 0 then redis.call('DEL', key); n = n + 1 end
  end
end
return n`)
	keys = redis.NewScript(everyDatabase + `n = n + 1
  end
end
return n`)
)

// Stretch gives every lease two minutes that has less than half of them left. A command that
// answers a time to live shows that.
func (s *Servers) Stretch(ctx context.Context) error {
	return stretch.Run(ctx, s.redis, nil, stretched.Milliseconds()).Err()
}

// expired is in INFO stats.
var expired = regexp.MustCompile(`(?m)^expired_keys:(\d+)`)

// Expired is how many keys the clock has removed since the server was started. Who has met
// one that had run out has counted it.
func (s *Servers) Expired(ctx context.Context) (int, error) {
	info, err := s.redis.Info(ctx, "stats").Result()
	if err != nil {
		return 0, err
	}
	m := expired.FindStringSubmatch(info)
	if m == nil {
		return 0, errors.New("redis: INFO stats has no expired_keys")
	}
	return strconv.Atoi(m[1])
}

// Leases is how many keys have a time to live.
func (s *Servers) Leases(ctx context.Context) (int, error) {
	return leases.Run(ctx, s.redis, nil).Int()
}

// Expire removes every key that has a time to live, and returns how many.
func (s *Servers) Expire(ctx context.Context) (int, error) {
	return expire.Run(ctx, s.redis, nil).Int()
}

// Keys is how many keys there are.
func (s *Servers) Keys(ctx context.Context) (int, error) { return keys.Run(ctx, s.redis, nil).Int() }

// Forget removes all keys.
func (s *Servers) Forget(ctx context.Context) (int, error) {
	n, err := s.Keys(ctx)
	if err != nil {
		return 0, err
	}
	return n, s.redis.FlushAll(ctx).Err()
}

// client is a line of CLIENT LIST.
var client = regexp.MustCompile(`(?m)^id=(\d+) .* flags=(\S+) `)

// Blocked are the clients that wait in a command such as BLPOP (CLIENT LIST, flag b).
func (s *Servers) Blocked(ctx context.Context) (map[int64]bool, error) {
	list, err := s.redis.ClientList(ctx).Result()
	if err != nil {
		return nil, fmt.Errorf("ask who is blocked in Redis: %w", err)
	}
	blocked := map[int64]bool{}
	for _, m := range client.FindAllStringSubmatch(list, -1) {
		if strings.Contains(m[2], "b") {
			id, err := strconv.ParseInt(m[1], 10, 64)
			if err != nil {
				return nil, err
			}
			blocked[id] = true
		}
	}
	return blocked, nil
}

// Gone reports whether a connection is not there any more.
func (s *Servers) Gone(ctx context.Context, id int64) (bool, error) {
	list, err := s.redis.ClientList(ctx).Result()
	return !strings.Contains("\n"+list, fmt.Sprintf("\nid=%d ", id)), err
}

// Unblock ends a client's wait as its time-out would.
func (s *Servers) Unblock(ctx context.Context, id int64) error {
	return s.redis.ClientUnblock(ctx, id).Err()
}
