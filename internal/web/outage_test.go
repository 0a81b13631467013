package web

import (
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
	"github.com/oversell/oversell/internal/tier"
	"github.com/oversell/oversell/internal/web/webtest"
)

// TestOutage: a 503 names a killed server, and so does /readyz. Strategies that do not need the
// server go on, and all work again once the server is back. make soak also kills ZooKeeper and etcd.
func TestOutage(t *testing.T) {
	t.Parallel()
	db := localservertest.MySQL(t)
	nodes := startNodes(t, 4) // one for redis, three for redlock
	urls := urls(nodes)
	on := engine.Config{DB: db.URL(), Redis: urls[0], Redlock: urls[1:]}
	var keeper *localserver.Zookeeper
	var etcd *localserver.Etcd
	if tier.Soaking() {
		group := localservertest.Group(t)
		var err error
		keeper, err = localserver.StartZookeeper(group)
		require.NoError(t, err)
		etcd, err = localserver.StartEtcd(group)
		require.NoError(t, err)
		on.Zookeeper, on.Etcd = []string{keeper.Addr}, []string{etcd.Addr}
	}
	base := startServe(t, on)
	webtest.Restock(t, base, "apple", 1000)

	status := func(path string) int { return webtest.Call(t, http.MethodGet, base+path, "", nil).Status }
	buy := func(strategy string) response {
		return webtest.Call(t, http.MethodGet, base+"/product/buy?lock="+strategy, "", nil)
	}
	works := func(strategy string) {
		t.Helper()
		webtest.WantStatus(t, buy(strategy), http.StatusOK, strategy)
	}
	// down kills the server, checks which strategies are affected, and restarts it.
	down := func(name string, kill, start func() error, hurt, fine []string) {
		t.Helper()
		require.NoError(t, kill())
		for _, strategy := range hurt {
			webtest.WantProblem(t, buy(strategy), http.StatusServiceUnavailable, "failed", "the "+name+" is down")
		}
		for _, strategy := range fine {
			works(strategy)
		}
		webtest.WantProblem(t, webtest.Call(t, http.MethodGet, base+"/readyz", "", nil), http.StatusServiceUnavailable, "failed", name)
		expect.Equal(t, status("/healthz"), http.StatusOK, "healthz without", name)
		require.NoError(t, start())
		webtest.Eventually(t, "ready again", func() bool { return status("/readyz") == http.StatusOK })
		for _, strategy := range append(hurt, fine...) {
			works(strategy)
		}
	}
	sql := []string{"none", "mutex", "for-update", "optimistic", "conditional"}
	down("redis", nodes[0].Kill, nodes[0].Start, []string{"redis"}, append(sql, "redlock"))
	locks := []string{"redis", "redlock"}
	if tier.Soaking() {
		down("zookeeper", keeper.Kill, keeper.Start, []string{"zookeeper"}, append(sql, "etcd"))
		down("etcd", etcd.Kill, etcd.Start, []string{"etcd", "etcd-fenced"}, append(sql, "zookeeper"))
		locks = append(locks, "zookeeper", "etcd-fenced")
	}
	down("database", db.Kill, db.Start, append(sql, locks...), nil)
	both := func(do func(*localserver.Redis) error) func() error {
		return func() error {
			if err := do(nodes[1]); err != nil {
				return err
			}
			return do(nodes[2])
		}
	}
	down("redlock", both((*localserver.Redis).Kill), both((*localserver.Redis).Start), []string{"redlock"}, append(sql, "redis"))

	// The loss of a minority of the nodes does not affect `redlock`.
	require.NoError(t, nodes[3].Kill())
	works("redlock")
	expect.Equal(t, status("/readyz"), http.StatusOK, "readyz with two of three Redlock nodes")
	sums := webtest.Audit(t, base, "apple")
	expect.Equal(t, sums.Drift, 0, "drift", sums)
}

// TestRestockWithoutRedis: a restock that cannot clear a lock changes neither stock nor records,
// and names the server. For `redlock`, a majority of the nodes is enough.
func TestRestockWithoutRedis(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 4)
	base := startServe(t, engine.Config{DB: "sqlite://" + t.TempDir() + "/shop.db", Redis: nodes[0].URL(), Redlock: urls(nodes[1:])})
	refused := func(server string) {
		t.Helper()
		before := webtest.Audit(t, base, "apple")
		webtest.WantProblem(t, webtest.Call(t, http.MethodPut, base+"/product/apple", `{"amount":7}`, nil), http.StatusServiceUnavailable, "failed", "nothing was restocked: the "+server+" is down")
		expect.Equal(t, webtest.Audit(t, base, "apple"), before, "stock and records")
	}
	kill := func(node *localserver.Redis) {
		t.Helper()
		require.NoError(t, node.Kill())
	}
	kill(nodes[3])
	webtest.Restock(t, base, "apple", 50)
	kill(nodes[2])
	refused("redlock")
	require.NoError(t, nodes[2].Start())
	kill(nodes[0])
	refused("redis")
}

// TestHungRedis: a buyer whose Redis hangs is answered when its own wait ends. The error names the
// server, instead of reporting a busy lock. If Redis may have admitted an order, its outcome is
// unknown.
func TestHungRedis(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 1)
	base := startServe(t, engine.Config{DB: "sqlite://" + t.TempDir() + "/shop.db", Redis: nodes[0].URL()}, waitFor(hungWait), func(s *setup) { s.Settings.LeaseTTL = time.Hour })
	hang(t, base, nodes, "the redis is down", "redis", "fenced", "setnx-ttl", "redis-decr", "redis-lua")
}

const hungWait = 3 * time.Second

// hang stops the nodes, buys from each strategy, and lets the nodes go on. The first strategy must
// then sell again.
func hang(t *testing.T, base string, nodes []*localserver.Redis, says string, strategies ...string) {
	t.Helper()
	buy := func(strategy string) response {
		return webtest.Call(t, http.MethodGet, base+"/product/buy?lock="+strategy, "", nil)
	}
	signal := func(s syscall.Signal) {
		t.Helper()
		for _, node := range nodes {
			require.NoError(t, node.Signal(s))
		}
	}
	for _, strategy := range strategies { // opens the connections on which later commands wait for the hung Redis
		webtest.RequireOK(t, buy(strategy), strategy)
	}
	signal(syscall.SIGSTOP)
	var all sync.WaitGroup
	for _, strategy := range strategies {
		all.Go(func() {
			start := time.Now()
			r := buy(strategy)
			if took := time.Since(start); took < hungWait || took > 10*hungWait {
				t.Errorf("%s: answered after %s, with a wait of %s", strategy, took, hungWait)
			}
			if strategy == "redis-lua" {
				if p := webtest.WantProblem(t, r, http.StatusGatewayTimeout, "unknown"); strings.Contains(p.Detail, "down") {
					t.Errorf("%s: %q", strategy, p.Detail)
				}
				return
			}
			webtest.WantProblem(t, r, http.StatusServiceUnavailable, "failed", says)
		})
	}
	all.Wait()
	webtest.WantStatus(t, buy("conditional"), http.StatusOK, "conditional")
	p := webtest.WantProblem(t, webtest.Call(t, http.MethodGet, base+"/readyz", "", nil), http.StatusServiceUnavailable, "failed")
	if !strings.Contains(p.Detail, says) || strings.Contains(p.Detail, "database") {
		t.Errorf("readiness %q, want that %s, and nothing else", p.Detail, says)
	}
	signal(syscall.SIGCONT)
	webtest.Eventually(t, "sells again", func() bool { return buy(strategies[0]).Status == http.StatusOK })
}

// TestSlowRedis: a Redis that answers late is not down. Each answer takes three seconds, which is longer
// than half of the default wait, and the buyers' wait is ten times as long.
func TestSlowRedis(t *testing.T) {
	t.Parallel()
	const late = 3 * time.Second
	link, err := testbed.NewLink(localservertest.Redis(t).Addr)
	require.NoError(t, err)
	t.Cleanup(link.Cut)
	base := startServe(t, engine.Config{DB: "sqlite://" + t.TempDir() + "/shop.db", Redis: "redis://" + link.Addr}, waitFor(10*late))
	buyEach := func() {
		var all sync.WaitGroup
		for _, strategy := range []string{"redis", "fenced", "setnx-ttl", "redis-decr", "redis-lua"} {
			all.Go(func() {
				webtest.WantStatus(t, webtest.Call(t, http.MethodGet, base+"/product/buy?lock="+strategy, "", nil), http.StatusOK, strategy)
			})
		}
		all.Wait()
	}
	buyEach() // opens connections and loads scripts
	require.NoError(t, link.Delay(late, 0))
	buyEach()
}

// TestHungDatabase: the error names a database that hangs, instead of reporting a long queue. A
// restock fails before it makes buyers wait.
func TestHungDatabase(t *testing.T) {
	t.Parallel()
	db := localservertest.MySQL(t)
	base := startServe(t, engine.Config{DB: db.URL()}, waitFor(time.Second))
	require.NoError(t, db.Signal(syscall.SIGSTOP))
	for _, call := range []func() response{
		func() response { return webtest.Call(t, http.MethodGet, base+"/product/buy?lock=for-update", "", nil) },
		func() response {
			return webtest.Call(t, http.MethodPost, base+"/product/buy", "", http.Header{"Idempotency-Key": {"k"}})
		},
		func() response { return webtest.Call(t, http.MethodPut, base+"/product/apple", `{"amount":7}`, nil) },
	} {
		r := call()
		webtest.Eventually(t, "says what is down", func() bool { // a shop that gets no processor time cannot find out, and answers busy
			down := strings.Contains(string(r.Body), "the database is down")
			if !down {
				r = call()
			}
			return down
		})
		webtest.WantProblem(t, r, http.StatusServiceUnavailable, "failed")
	}
	require.NoError(t, db.Signal(syscall.SIGCONT))
	webtest.Eventually(t, "sells again", func() bool {
		return webtest.Call(t, http.MethodGet, base+"/product/buy?lock=for-update", "", nil).Status == http.StatusOK
	})
}

func startNodes(t *testing.T, n int) (nodes []*localserver.Redis) {
	t.Helper()
	for range n {
		nodes = append(nodes, localservertest.Redis(t))
	}
	return nodes
}

func urls(nodes []*localserver.Redis) (all []string) {
	for _, node := range nodes {
		all = append(all, node.URL())
	}
	return all
}

// TestRestockWithoutLocks: a restock that cannot clear a lock in ZooKeeper or etcd changes nothing.
func TestRestockWithoutLocks(t *testing.T) {
	tier.Soak(t, "needs ZooKeeper and etcd")
	t.Parallel()
	group := localservertest.Group(t)
	keeper, err := localserver.StartZookeeper(group)
	require.NoError(t, err)
	etcd, err := localserver.StartEtcd(group)
	require.NoError(t, err)
	for _, c := range []struct {
		name string
		kill func() error
		on   engine.Config
	}{
		{"zookeeper", keeper.Kill, engine.Config{Zookeeper: []string{keeper.Addr}}},
		{"etcd", etcd.Kill, engine.Config{Etcd: []string{etcd.Addr}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.on.DB = "sqlite://" + t.TempDir() + "/shop.db"
			base := startServe(t, c.on)
			before := webtest.Audit(t, base, "apple")
			require.NoError(t, c.kill())
			webtest.WantProblem(t, webtest.Call(t, http.MethodPut, base+"/product/apple", `{"amount":7}`, nil), http.StatusServiceUnavailable, "failed", "the "+c.name+" is down")
			expect.Equal(t, webtest.Audit(t, base, "apple"), before, "stock and records")
		})
	}
}
