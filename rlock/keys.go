package rlock

import "strings"

// maxName is the longest name in bytes. Redis itself would take 512 MB.
const maxName = 512

// keys are the names under which Redis knows one lock. All but the lock
// itself have its name in braces, so that a cluster keeps them in one slot.
type keys struct {
	lock     string // hash: field "uuid:id" of the holder -> holds
	channel  string // '0' is published here when the lock becomes free
	token    string // counter of a fenced lock
	queue    string // list of a fair lock: fields, the next one first
	timeouts string // sorted set of a fair lock: field -> ms since 1970
}

// namesOf follows RedissonObject.prefixName: a name with a brace has its own hash
// tag.
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

// waiter is the channel on which one waiter of a fair lock is notified.
func (k keys) waiter(field string) string { return k.channel + ":" + field }

func (k keys) fair() []string { return []string{k.lock, k.queue, k.timeouts, k.channel} }
