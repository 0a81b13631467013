package rlock

import (
	"strings"

	"github.com/redis/go-redis/v9"
)

// maxName is the longest name in bytes. Redis itself would take 512 MB.
const maxName = 512

// keys are the names of one lock in Redis. Each except the lock itself contains the lock's name in braces, so
// that a cluster keeps all of them in one slot.
type keys struct {
	lock     string // hash: field "uuid:id" of the holder -> number of its leases
	channel  string // '0' is published here when the lock becomes free
	token    string // counter of a fenced lock
	queue    string // list of a fair lock: fields, the next one first
	timeouts string // sorted set of a fair lock: field -> ms since 1970
}

// namesOf returns the keys of the lock with that name. As in RedissonObject.prefixName, a name with a brace
// gets no additional braces.
func namesOf(name string) keys {
	tagged := "{" + name + "}"
	if strings.Contains(name, "{") {
		tagged = name
	}
	return keys{
		lock:     name,
		channel:  "redisson_lock__channel:" + tagged,
		token:    "redisson_lock_token:" + tagged,
		queue:    "redisson_lock_queue:" + tagged,
		timeouts: "redisson_lock_timeout:" + tagged,
	}
}

// inOneSlot reports whether all keys are in one slot of a Redis Cluster, as a script requires. That is true
// for a name without braces, and for a name with a hash tag, a part in braces.
func (k keys) inOneSlot() bool { return hashTag(k.lock) == hashTag(k.channel) }

// hashTag returns the part of a key that determines its slot: the text in its first braces, or all
// of it (Redis cluster specification, "Hash tags").
func hashTag(key string) string {
	if _, rest, found := strings.Cut(key, "{"); found {
		if tag, _, closed := strings.Cut(rest, "}"); closed && tag != "" {
			return tag
		}
	}
	return key
}

// check returns an error if a lock of this client cannot have this name.
func (l *redisLock) check() error {
	if n := len(l.keys.lock); n == 0 || n > maxName {
		return ErrBadName
	}
	if _, cluster := l.client.redis.(*redis.ClusterClient); cluster && !l.keys.inOneSlot() {
		return ErrBadSlots
	}
	return nil
}

// waiter returns the channel on which one waiter of a fair lock is notified.
func (k keys) waiter(field string) string { return k.channel + ":" + field }

func (k keys) fair() []string { return []string{k.lock, k.queue, k.timeouts, k.channel} }
