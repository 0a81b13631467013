package libraries

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

// TestRedsync186: a client accepts a lock on three of five nodes. One of them restarts without its
// key, and another client gets a majority as well. https://github.com/go-redsync/redsync/issues/186
func TestRedsync186(t *testing.T) {
	t.Parallel()
	if a, b := twoOfFive(t, true, false); !a || b {
		t.Errorf("no node forgot: the first has it %t, the second %t; want true, false", a, b)
	}
	if a, b := twoOfFive(t, false, true); !a || b {
		t.Errorf("all five nodes, one of which forgot: the first has it %t, the second %t; want true, false", a, b)
	}
	a, b := twoOfFive(t, true, true)
	bug{redsync.New, ""}.judge(t, a && b, fmt.Sprintf(
		"three of five nodes, one of which forgot: the first client has the lock: %t; so has the second: %t", a, b))
}

// twoOfFive lets two clients ask for a lock, one after the other, and reports which of them got it. If
// bare is true, two nodes are down while the first client asks. If forget is true, a node restarts
// empty before the second client asks.
func twoOfFive(t *testing.T, bare, forget bool) (first, second bool) {
	t.Helper()
	group := localservertest.Group(t)
	var nodes []*localserver.Redis
	for range 5 {
		r, err := localserver.StartRedis(group)
		must(t, err)
		nodes = append(nodes, r)
	}
	if bare {
		must(t, nodes[3].Kill())
		must(t, nodes[4].Kill())
	}
	holder := mutex(t, nodes)
	must(t, holder.LockContext(t.Context()))
	if bare {
		must(t, nodes[3].Start())
		must(t, nodes[4].Start())
	}
	if forget {
		must(t, nodes[2].Kill())
		must(t, nodes[2].Start())
	}
	second = mutex(t, nodes).LockContext(t.Context()) == nil
	return time.Now().Before(holder.Until()), second
}

// mutex returns the mutex of a client with connections of its own. It tries once.
func mutex(t *testing.T, nodes []*localserver.Redis, options ...redsync.Option) *redsync.Mutex {
	t.Helper()
	var pools []redsyncredis.Pool
	for _, node := range nodes {
		rdb := redis.NewClient(&redis.Options{Addr: node.Addr})
		t.Cleanup(func() { _ = rdb.Close() })
		pools = append(pools, goredis.NewPool(rdb))
	}
	options = append([]redsync.Option{redsync.WithTries(1), redsync.WithExpiry(10 * time.Minute)}, options...)
	return redsync.New(pools...).NewMutex("apple", options...)
}

// TestRedsync149: with WithSetNXOnExtend, a holder whose lock has expired creates it anew, and
// Extend reports success. Meanwhile another client held the lock.
// https://github.com/go-redsync/redsync/pull/149
func TestRedsync149(t *testing.T) {
	t.Parallel()
	if extended := extendAfterOther(t); extended {
		t.Error("without the option: the lock was extended after another client had it")
	}
	extended := extendAfterOther(t, redsync.WithSetNXOnExtend())
	bug{redsync.New, ""}.judge(t, extended, fmt.Sprintf(
		"the lease ran out, another client locked and unlocked, then the first one's Extend said: %t", extended))
}

// extendAfterOther lets a lease expire, lets another client lock and unlock, and returns the result
// of the first client's Extend.
func extendAfterOther(t *testing.T, options ...redsync.Option) bool {
	t.Helper()
	nodes := []*localserver.Redis{startRedis(t)}
	// By default a node must answer within 5 % of the expiry, which is too short here.
	late := mutex(t, nodes, append(options, redsync.WithExpiry(4*time.Second), redsync.WithTimeoutFactor(1))...)
	must(t, late.LockContext(t.Context()))
	other := mutex(t, nodes, redsync.WithTries(1000), redsync.WithRetryDelay(20*time.Millisecond))
	must(t, other.LockContext(t.Context())) // returns when the lease has expired
	if time.Now().Before(late.Until()) {
		t.Fatal("the other client had the lock before the lease had expired")
	}
	_, err := other.UnlockContext(t.Context())
	must(t, err)
	extended, _ := late.ExtendContext(t.Context()) // an error counts as a refusal
	return extended
}
