package engine_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
	"github.com/oversell/oversell/internal/tier"
)

func openRedis(t *testing.T, url string) (*engine.Engine, error) {
	t.Helper()
	e, err := engine.Open(t.Context(), engine.Config{
		DB: "sqlite://" + filepath.Join(t.TempDir(), "shop.db"), Redis: url, Wait: 8 * time.Second, Conns: 4,
	})
	if err == nil {
		t.Cleanup(func() { _ = e.Close() })
	}
	return e, err
}

func service(t *testing.T, kind string) localserver.RedisService {
	t.Helper()
	server, err := localserver.RedisNamed(kind)
	require.NoError(t, err)
	s, err := server.Start(localservertest.Group(t), nil)
	require.NoError(t, err)
	return s
}

// TestWrongRedis: a URL of the wrong kind, or without a server, is rejected in one line that says what
// to give.
func TestWrongRedis(t *testing.T) {
	tier.Soak(t, "needs sentinels or a cluster of Redis")
	t.Parallel()
	single, sentinel, cluster := service(t, topology.Single), service(t, topology.Sentinel), service(t, topology.Cluster)
	one, watcher, node := single.Nodes()[0].Addr, sentinel.Watchers()[0].Addr, cluster.Nodes()[0].Addr
	for _, c := range []struct{ name, url, says string }{
		{"cluster URL at a single server", "redis+cluster://" + one, one + " has cluster support disabled: it is a single server; use redis://" + one},
		{"cluster URL at a sentinel", "redis+cluster://" + watcher, "is a sentinel; use redis+sentinel://" + watcher + "/shop"},
		{"single URL at a node of a cluster", "redis://" + node, "a node of a Redis Cluster answers there; use redis+cluster://" + node},
		{"single URL at a sentinel", "redis://" + watcher, "a sentinel answers there; use redis+sentinel://" + watcher + "/shop"},
		{"single URL at a replica", "redis://" + sentinel.Nodes()[1].Addr, "a replica answers there, which takes no writes; its primary is " + sentinel.Nodes()[0].Addr},
		{"sentinel URL at a single server", "redis+sentinel://" + one + "/shop", one + " is not a sentinel; use redis://" + one},
		{"sentinel URL at a node of a cluster", "redis+sentinel://" + node + "/shop", "is a node of a Redis Cluster; use redis+cluster://" + node},
		{"a primary that the sentinels do not know", "redis+sentinel://" + watcher + "/mymaster", `the sentinels know no primary "mymaster"; they know shop`},
		{"nobody at a sentinel URL", "redis+sentinel://127.0.0.1:1,127.0.0.1:2/shop", "none of 127.0.0.1:1, 127.0.0.1:2 answers"},
		{"nobody at a cluster URL", "redis+cluster://127.0.0.1:1", "none of 127.0.0.1:1 answers"},
		{"no name", "redis+sentinel://" + watcher, "names no primary"},
		{"a name where there is none", "redis+cluster://" + node + "/shop", "has one database and no name"},
		{"a host twice", "redis+cluster://" + node + "," + node, "occurs twice"},
		{"no host", "redis+sentinel:///shop", "is not a host"},
		{"a database that is none", "redis+sentinel://" + watcher + "/shop/x", "is not a number"},
		{"a password with a slash, cluster", "redis+cluster://u:se/cret@127.0.0.1:1", "%2F"},
		{"a password with a slash, sentinel", "redis+sentinel://u:se/cret@127.0.0.1:1/shop", "%2F"},
		{"a password with a slash, single", "redis://u:6379/cret@127.0.0.1:1", "%2F"},
		{"a password with a question mark", "redis+cluster://u:se?cret@127.0.0.1:1", "%3F"},
		{"a password with a hash, cluster", "redis+cluster://:12#cret@127.0.0.1:1", "%23"},
		{"a password with a hash, sentinel", "redis+sentinel://u:se#cret@127.0.0.1:1/shop", "%23"},
		{"a password with a bracket", "redis+cluster://u:se[cret@127.0.0.1:1", "percent-encode"},
		{"a password with an at sign and a slash", "redis+cluster://u:p@se/cret@127.0.0.1:1", "%40"},
		{"an unreadable password", "redis+cluster://:secret%zz@" + node, "cannot read the URL"},
		{"another scheme", "http://" + one, "redis+cluster://"},
	} {
		_, err := openRedis(t, c.url)
		switch {
		case err == nil:
			t.Errorf("%s was opened", c.name)
		case !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "cret@") || strings.Contains(err.Error(), "u:se"):
			t.Errorf("%s: %v; want one line with %q", c.name, err, c.says)
		}
	}
	forgets := redis.NewClient(&redis.Options{Addr: watcher})
	defer forgets.Close()
	require.NoError(t, forgets.Do(t.Context(), "SENTINEL", "REMOVE", localserver.PrimaryName).Err())
	if _, err := openRedis(t, "redis+sentinel://"+watcher+"/shop"); err == nil || !strings.Contains(err.Error(), "they know nothing") {
		t.Errorf("a sentinel that watches nobody: %v", err)
	}
	e, err := engine.Open(t.Context(), engine.Config{
		DB: "sqlite://" + filepath.Join(t.TempDir(), "shop.db"), Redlock: []string{"redis+cluster://" + node}, Wait: time.Second, Conns: 4,
	})
	if err == nil {
		_ = e.Close()
		t.Error("a cluster was taken for a Redlock node")
	}
	e, err = engine.Open(t.Context(), engine.Config{
		DB: "sqlite://" + filepath.Join(t.TempDir(), "shop.db"), Redlock: []string{"redis://u:6379/cret@127.0.0.1:1"}, Wait: time.Second, Conns: 4,
	})
	if err == nil {
		_ = e.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "%2F") || strings.Contains(err.Error(), "cret") {
		t.Errorf("a password with a slash, Redlock: %v", err)
	}
}

// TestDeadRedisNodes: a list with dead nodes works, and says which they are.
func TestDeadRedisNodes(t *testing.T) {
	tier.Soak(t, "needs sentinels or a cluster of Redis")
	t.Parallel()
	for _, kind := range []string{topology.Sentinel, topology.Cluster} {
		url := service(t, kind).URL()
		url = strings.Replace(url, "://", "://127.0.0.1:1,", 1)
		e, err := openRedis(t, url)
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		if e.Topology != kind || len(e.Warnings) != 1 || !strings.Contains(e.Warnings[0], "127.0.0.1:1 of ") {
			t.Errorf("%s: %s, warnings %q", kind, e.Topology, e.Warnings)
		}
		expect.NoError(t, e.Redis.Set(t.Context(), "key", "value", 0).Err(), kind)
	}
}

// TestRedisComesBack: without Redis, a command fails in bounded time and the shop is not ready. The shop
// recovers by itself when Redis is back.
func TestRedisComesBack(t *testing.T) {
	tier.Soak(t, "needs sentinels or a cluster of Redis")
	t.Parallel()
	for _, kind := range []string{topology.Sentinel, topology.Cluster} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := service(t, kind)
			e, err := openRedis(t, s.URL())
			require.NoError(t, err)
			set := func() error { return e.Redis.Set(t.Context(), "key", "value", 0).Err() }
			require.NoError(t, set())
			all := append(slices.Clone(s.Nodes()), s.Watchers()...)
			for _, node := range all {
				require.NoError(t, node.Kill())
			}
			for range 3 {
				start := time.Now()
				if err := set(); err == nil {
					t.Error("written where nobody is")
				}
				if took := time.Since(start); took > 5*time.Second { // the wait is 1 s; the machine may be busy
					t.Errorf("it took %s to fail", took)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			if down := e.Check(ctx); down["redis"] == nil {
				t.Errorf("down: %v, want redis", down)
			}
			var starts sync.WaitGroup
			for _, node := range all {
				starts.Go(func() {
					expect.NoError(t, node.Start())
				})
			}
			starts.Wait()
			within(t, "it comes back", set)
		})
	}
}

// TestHungSentinel: the client was given one sentinel, and that one hangs. For a new connection the client asks
// the other sentinels, whose addresses it has learned from the first.
func TestHungSentinel(t *testing.T) {
	t.Parallel()
	s := service(t, topology.Sentinel)
	first := s.Watchers()[0]
	e, err := openRedis(t, "redis+sentinel://"+first.Addr+"/"+localserver.PrimaryName)
	require.NoError(t, err)
	set := func() {
		t.Helper()
		conn := e.Redis.(*redis.Client).Conn() // conn keeps its connection, so the next command needs another connection
		t.Cleanup(func() { _ = conn.Close() })
		expect.NoError(t, conn.Set(t.Context(), "key", "value", 0).Err())
	}
	set()
	require.NoError(t, first.Signal(syscall.SIGSTOP))
	set()
	require.NoError(t, first.Signal(syscall.SIGCONT))
}

// TestStalePrimary: just after a failover a sentinel may still name the old primary, so a new connection
// reaches a replica. The shop does not stay there when the sentinels have agreed.
func TestStalePrimary(t *testing.T) {
	t.Parallel()
	s := service(t, topology.Sentinel)
	primary, replica := s.Nodes()[0].Addr, s.Nodes()[1].Addr
	var named atomic.Value
	named.Store(primary)
	way := localservertest.Serve(t, func(conn net.Conn) {
		server, err := net.Dial("tcp", named.Load().(string))
		if err != nil {
			return
		}
		defer server.Close()
		go func() { _, _ = io.Copy(server, conn) }()
		_, _ = io.Copy(conn, server)
	})
	e, err := engine.Open(t.Context(), engine.Config{
		DB: "sqlite://" + filepath.Join(t.TempDir(), "shop.db"), Redis: s.URL(), Wait: 8 * time.Second, Conns: 4,
		Detours: engine.Detours{primary: way},
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close() })
	named.Store(replica)
	c := redis.NewClient(&redis.Options{Addr: primary})
	defer c.Close()
	if err := c.ClientKillByFilter(t.Context(), "TYPE", "normal").Err(); err != nil { // sentinels also close the connections
		t.Fatal(err)
	}
	within(t, "its new connection reaches the replica", func() error {
		if down := e.Check(t.Context())["redis"]; down == nil || !strings.Contains(down.Error(), "replica") {
			return fmt.Errorf("down: %v", down)
		}
		return nil
	})
	named.Store(primary)
	if down := e.Check(t.Context())["redis"]; down != nil {
		t.Errorf("at the primary: %v", down)
	}
}

func within(t *testing.T, what string, f func() error) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for err := f(); err != nil; err = f() {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s: %v", what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// answerless is a server that counts commands and closes the connection after each.
func answerless(t *testing.T) (addr string, got *atomic.Int64) {
	t.Helper()
	got = &atomic.Int64{}
	return localservertest.Serve(t, func(conn net.Conn) {
		buffer := make([]byte, 1<<10)
		for {
			n, err := conn.Read(buffer)
			if err != nil {
				return
			}
			if strings.Contains(string(buffer[:n]), "incr") {
				got.Add(1)
				return
			}
			_, _ = conn.Write([]byte("-ERR unknown command\r\n")) // answer to HELLO
		}
	}), got
}

// TestSentOnce: no client repeats a command that the server may have executed. On a cluster the library
// would, whatever MaxRetries says.
func TestSentOnce(t *testing.T) {
	t.Parallel()
	addr, got := answerless(t)
	raw := redis.NewClusterClient(&redis.ClusterOptions{ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
		return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: addr}}}}, nil
	}, DisableIdentity: true, DisableRoutingPolicies: true})
	defer raw.Close()
	if err := raw.Incr(t.Context(), "key").Err(); err == nil || got.Load() < 2 {
		t.Errorf("%v, sent %d times: the library does not send again, and this test shows nothing", err, got.Load())
	}
	got.Store(0)
	raw.AddHook(engine.OnceOnCluster(raw))
	if err := raw.Incr(t.Context(), "key").Err(); err == nil || got.Load() != 1 {
		t.Errorf("%v, sent %d times, want once", err, got.Load())
	}
	got.Store(0)
	_, err := raw.Pipelined(t.Context(), func(p redis.Pipeliner) error { return p.Incr(t.Context(), "key").Err() })
	if err == nil || got.Load() != 1 {
		t.Errorf("pipeline: %v, sent %d times, want once", err, got.Load())
	}
}

// TestLateAnswer: the client reads the answer to a command although the command's deadline has passed
// meanwhile. Otherwise a key could be set without a holder.
func TestLateAnswer(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	addr := localservertest.Serve(t, func(conn net.Conn) {
		buffer := make([]byte, 1<<10)
		for {
			n, err := conn.Read(buffer)
			if err != nil {
				return
			}
			answer := "-ERR unknown command\r\n" // answer to HELLO, INFO and others
			switch command := string(buffer[:n]); {
			case strings.Contains(command, "ping"):
				answer = "+PONG\r\n"
			case strings.Contains(command, "set"):
				<-over
				answer = "+OK\r\n"
			}
			_, _ = conn.Write([]byte(answer))
		}
	})
	e, err := openRedis(t, "redis://"+addr)
	require.NoError(t, err)
	if err := e.Redis.Ping(t.Context()).Err(); err != nil { // a connection is open
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // long enough to send a command
	defer cancel()
	context.AfterFunc(ctx, func() { close(over) })
	expect.NoError(t, e.Redis.Set(ctx, "key", "value", 0).Err(), "the answer was not read")
}
