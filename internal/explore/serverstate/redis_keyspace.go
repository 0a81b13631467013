package serverstate

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

// A Keyspace is all of a Redis server that a program uses: every database number that has a
// key, as INFO keyspace names them. The program may SELECT another number than its URL names.
type Keyspace struct{ client *redis.Client }

// NewKeyspace asks through client, which stays the caller's.
func NewKeyspace(client *redis.Client) Keyspace { return Keyspace{client} }

// eachKey returns a script that counts the keys for which condition holds and does do to
// each. left is the key's time to live in ms, and negative where it has none.
func eachKey(condition, do string) *redis.Script {
	return redis.NewScript(`
local n = 0
for db in string.gmatch(redis.call('INFO', 'keyspace'), 'db(%d+):') do
  redis.call('SELECT', db)
  for _, key in ipairs(redis.call('KEYS', '*')) do
    local left = redis.call('PTTL', key)
    if ` + condition + ` then ` + do + ` n = n + 1 end
  end
end
return n`)
}

// Stretch gives every lease two minutes that has less than half of them left. A command that
// answers a time to live shows that.
func (k Keyspace) Stretch(ctx context.Context) error {
	return eachKey("left >= 0 and left < tonumber(ARGV[1]) / 2", "redis.call('PEXPIRE', key, ARGV[1])").
		Run(ctx, k.client, nil, stretched.Milliseconds()).Err()
}

// expired is in INFO stats.
var expired = regexp.MustCompile(`(?m)^expired_keys:(\d+)`)

// Expired returns how many keys the clock has removed since the server was started. The server
// counts a key that has expired when a command meets it.
func (k Keyspace) Expired(ctx context.Context) (int, error) {
	info, err := k.client.Info(ctx, "stats").Result()
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
func (k Keyspace) Leases(ctx context.Context) (int, error) {
	return eachKey("left >= 0", "").Run(ctx, k.client, nil).Int()
}

// Expire removes every key that has a time to live, and returns how many.
func (k Keyspace) Expire(ctx context.Context) (int, error) {
	return eachKey("left >= 0", "redis.call('DEL', key)").Run(ctx, k.client, nil).Int()
}

// Keys is how many keys there are.
func (k Keyspace) Keys(ctx context.Context) (int, error) {
	return eachKey("true", "").Run(ctx, k.client, nil).Int()
}

// Forget removes all keys.
func (k Keyspace) Forget(ctx context.Context) (int, error) {
	n, err := k.Keys(ctx)
	if err != nil {
		return 0, err
	}
	return n, k.client.FlushAll(ctx).Err()
}

// client is a line of CLIENT LIST.
var client = regexp.MustCompile(`(?m)^id=(\d+) .* flags=(\S+) `)

// Blocked are the clients that wait in a command such as BLPOP (CLIENT LIST, flag b).
func (k Keyspace) Blocked(ctx context.Context) (map[int64]bool, error) {
	list, err := k.client.ClientList(ctx).Result()
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
func (k Keyspace) Gone(ctx context.Context, id int64) (bool, error) {
	list, err := k.client.ClientList(ctx).Result()
	return !strings.Contains("\n"+list, fmt.Sprintf("\nid=%d ", id)), err
}

// Unblock ends a client's wait as its time-out would.
func (k Keyspace) Unblock(ctx context.Context, id int64) error {
	return k.client.ClientUnblock(ctx, id).Err()
}
