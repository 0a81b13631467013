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

// TestRedsync186: a client that got three of five nodes goes on with three. One
// of them restarts without its key, and another client has a majority beside it.
// https://github.com/go-redsync/redsync/issues/186
func TestRedsync186(t *testing.T) {
	t.Parallel()
	if a, b := twoOfFive(t, true, false); !a || b {
		t.Errorf("nobody forgot: the first has it %t, the second %t; want true, false", a, b)
	}
	if a, b := twoOfFive(t, false, true); !a || b {
		t.Errorf("all five nodes, one of which forgot: the first has it %t, the second %t; want true, false", a, b)
	}
	a, b := twoOfFive(t, true, true)
	bug{redsync.New, ""}.judge(t, a && b, fmt.Sprintf(
		"three of five nodes, one of which forgot: the first client has the lock: %t; so has the second: %t", a, b))
}

// twoOfFive lets two clients ask for a lock, one after the other, and says who
// has it in the end. With bare two nodes are down while the first one asks; with
// forget a node restarts, empty, before the second one does.
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

// mutex is a client's, with connections of its own. It asks once.
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

// TestRedsync149: with WithSetNXOnExtend a holder whose lock has run out makes
// it anew, and is told that it was extended. Another one has held it meanwhile.
// https://github.com/go-redsync/redsync/pull/149
func TestRedsync149(t *testing.T) {
	t.Parallel()
	if extended := extendAfterOther(t); extended {
		t.Error("without the option: the lock was extended after somebody else had it")
	}
	extended := extendAfterOther(t, redsync.WithSetNXOnExtend())
	bug{redsync.New, ""}.judge(t, extended, fmt.Sprintf(
		"the lease ran out, another client locked and unlocked, then the first one's Extend said: %t", extended))
}

// extendAfterOther lets a lease run out, then another client have the lock and
// give it back, and returns what the first one's Extend says.
func extendAfterOther(t *testing.T, options ...redsync.Option) bool {
	t.Helper()
	nodes := []*localserver.Redis{startRedis(t)}
	// A node has a share of the expiry to answer, 5 % unless told: too little here.
	late := mutex(t, nodes, append(options, redsync.WithExpiry(4*time.Second), redsync.WithTimeoutFactor(1))...)
	must(t, late.LockContext(t.Context()))
	other := mutex(t, nodes, redsync.WithTries(1000), redsync.WithRetryDelay(20*time.Millisecond))
	must(t, other.LockContext(t.Context())) // when the lease has run out
	if time.Now().Before(late.Until()) {
		t.Fatal("the other client had the lock before the lease had run out")
	}
	_, err := other.UnlockContext(t.Context())
	must(t, err)
	extended, _ := late.ExtendContext(t.Context()) // an error says no
	return extended
}
