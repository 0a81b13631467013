package topology_test

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
	"github.com/oversell/oversell/internal/tier"
)

// TestOnConnAsk: while a slot moves, a script whose key has already moved runs on the new server.
func TestOnConnAsk(t *testing.T) {
	server, err := localserver.RedisNamed(topology.Cluster)
	require.NoError(t, err)
	service, err := server.Start(localservertest.Group(t), nil)
	require.NoError(t, err)
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: strings.Split(strings.TrimPrefix(service.URL(), "redis+cluster://"), ","), MaxRetries: -1})
	defer cluster.Close()
	ctx, key := t.Context(), "lock:apple"
	from, err := cluster.MasterForKey(ctx, key)
	require.NoError(t, err)
	var to *redis.Client
	err = topology.EachPrimary(ctx, cluster, func(c redis.UniversalClient) error {
		if node, ok := c.(*redis.Client); ok && node.Options().Addr != from.Options().Addr {
			to = node
		}
		return nil
	})
	if err != nil || to == nil {
		t.Fatal("no other primary", err)
	}
	slot := cluster.ClusterKeySlot(ctx, key).Val()
	err = errors.Join(
		to.Do(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", from.ClusterMyID(ctx).Val()).Err(),
		from.Do(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", to.ClusterMyID(ctx).Val()).Err())
	require.NoError(t, err)
	err = topology.OnConn(ctx, cluster, key, func(conn *redis.Conn) error {
		return conn.Eval(ctx, `return redis.call("set", KEYS[1], "token")`, []string{key}).Err()
	})
	expect.NoError(t, err)
	expect.Equal(t, to.ClusterCountKeysInSlot(ctx, int(slot)).Val(), 1, "keys at the slot's new server")
}

// TestWaitIsBounded: a server that does not answer WAIT delays a caller no longer than the client's
// read time-out.
func TestWaitIsBounded(t *testing.T) {
	tier.Test(t, "the other tests here need servers, and make quick links none of them")
	t.Parallel()
	addr := localservertest.Serve(t, func(conn net.Conn) {
		buffer := make([]byte, 1<<10)
		for {
			n, err := conn.Read(buffer)
			if err != nil {
				return
			}
			if !strings.Contains(strings.ToLower(string(buffer[:n])), "wait") {
				_, _ = conn.Write([]byte("-ERR unknown command\r\n")) // answer to HELLO
			}
		}
	})
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ReadTimeout: 50 * time.Millisecond, DisableIdentity: true})
	defer client.Close()
	start := time.Now()
	err := topology.OnConn(t.Context(), client, "key", func(conn *redis.Conn) error {
		_, err := topology.Wait(t.Context(), conn, 1, 10*time.Millisecond)
		return err
	})
	if took := time.Since(start); err == nil || took > 9*time.Second { // redis.Conn.Wait gives up after 10 s
		t.Errorf("%v after %s", err, took)
	}
}
