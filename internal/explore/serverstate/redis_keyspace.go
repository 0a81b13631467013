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

// stretched is the time to live that Stretch gives to a lease, since only an event may end a lease in a run. It is
// short, since such leases remain in a user's server if the explorer is killed. If a run changes nothing for that long,
// a key may expire; Expired shows that.
const stretched = 2 * time.Minute

// A Keyspace is all databases of a Redis server that have a key, as listed by INFO keyspace. The program may SELECT a
// database other than the one in its URL.
type Keyspace struct{ client *redis.Client }

// NewKeyspace returns the keyspace of client's server. The caller closes client.
func NewKeyspace(client *redis.Client) Keyspace { return Keyspace{client} }

// eachKey returns a script that counts the keys for which `condition` is true, and executes `do` for each of them. Both
// parameters are Lua code. In it, `left` is the key's time to live in ms; it is negative if the key does not expire.
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

// Named returns the keys that a command names, according to the server. The result `known` is false if the command may
// use other keys, because it runs a script or works on all keys.
func (k Keyspace) Named(ctx context.Context, words []string) (keys []string, known bool, _ error) {
	args := []any{"COMMAND", "GETKEYS"}
	for _, word := range words {
		args = append(args, word)
	}
	keys, err := k.client.Do(ctx, args...).StringSlice()
	var refused redis.Error
	if errors.As(err, &refused) {
		return nil, false, nil
	}
	return keys, err == nil && len(keys) > 0, err
}

// Stretch sets leases with less than one minute left to two minutes. The program can see that in the answer to a
// command such as PTTL.
func (k Keyspace) Stretch(ctx context.Context) error {
	return eachKey("left >= 0 and left < tonumber(ARGV[1]) / 2", "redis.call('PEXPIRE', key, ARGV[1])").
		Run(ctx, k.client, nil, stretched.Milliseconds()).Err()
}

// values returns each key and its value. The key is prefixed by its database number, unless that is ARGV[2]. Times to
// live and the ids of streams, which are times, are omitted.
var values = redis.NewScript(`
local all = {}
for db in string.gmatch(redis.call('INFO', 'keyspace'), 'db(%d+):') do
  redis.call('SELECT', db)
  for _, key in ipairs(redis.call('KEYS', '*')) do
    local kind, value = redis.call('TYPE', key).ok, {}
    if kind == 'string' then value = {redis.call('GET', key)}
    elseif kind == 'list' then value = redis.call('LRANGE', key, 0, -1)
    elseif kind == 'zset' then value = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
    elseif kind == 'set' then value = redis.call('SMEMBERS', key) table.sort(value)
    elseif kind == 'hash' then
      local flat = redis.call('HGETALL', key)
      for i = 1, #flat, 2 do table.insert(value, flat[i] .. '=' .. flat[i + 1]) end
      table.sort(value)
    elseif kind == 'stream' then
      for _, entry in ipairs(redis.call('XRANGE', key, '-', '+')) do table.insert(value, table.concat(entry[2], ' ')) end
    end
    if db ~= ARGV[2] then key = db .. ':' .. key end
    table.insert(all, {key, table.concat(value, ' ')})
    if #all > tonumber(ARGV[1]) then return redis.error_reply('more than ' .. ARGV[1] .. ' keys') end
  end
end
return all`)

// Values returns the keys of all databases, each with its value as text. It fails if there are more than `most` keys.
func (k Keyspace) Values(ctx context.Context, most int) (all [][]string, _ error) {
	answer, err := values.Run(ctx, k.client, nil, most, k.client.Options().DB).Slice()
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	for _, pair := range answer {
		both := pair.([]any)
		all = append(all, []string{both[0].(string), both[1].(string)})
	}
	return all, nil
}

var expired = regexp.MustCompile(`(?m)^expired_keys:(\d+)`)

// Expired returns the number of keys that have expired by the clock since the server started. The server counts a
// key when a command accesses it.
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

// Leases returns the number of keys with a time to live.
func (k Keyspace) Leases(ctx context.Context) (int, error) {
	return eachKey("left >= 0", "").Run(ctx, k.client, nil).Int()
}

// Expire removes every key with a time to live, and returns their number.
func (k Keyspace) Expire(ctx context.Context) (int, error) {
	return eachKey("left >= 0", "redis.call('DEL', key)").Run(ctx, k.client, nil).Int()
}

// Keys returns the number of keys.
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

// client matches the id and the flags in a line of CLIENT LIST.
var client = regexp.MustCompile(`(?m)^id=(\d+) .* flags=(\S+) `)

// Blocked returns the clients that wait in a command such as BLPOP (flag b in CLIENT LIST).
func (k Keyspace) Blocked(ctx context.Context) (map[int64]bool, error) {
	list, err := k.client.ClientList(ctx).Result()
	if err != nil {
		return nil, fmt.Errorf("list the blocked clients of Redis: %w", err)
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

// Gone reports whether a connection has ended.
func (k Keyspace) Gone(ctx context.Context, id int64) (bool, error) {
	list, err := k.client.ClientList(ctx).Result()
	return !strings.Contains("\n"+list, fmt.Sprintf("\nid=%d ", id)), err
}

// Interrupt ends a client's wait, like a time-out.
func (k Keyspace) Interrupt(ctx context.Context, id int64) error {
	return k.client.ClientUnblock(ctx, id).Err()
}
