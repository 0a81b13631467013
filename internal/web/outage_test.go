package web

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
	"github.com/oversell/oversell/internal/web/webtest"
)

// TestOutage: a 503 names a killed server, and so does readiness. Strategies that do not need it go
// on, and everything works once it is back.
func TestOutage(t *testing.T) {
	t.Parallel()
	db := localservertest.MySQL(t)
	nodes := startNodes(t, 4) // one for redis, three for redlock
	urls := urls(nodes)
	group := localservertest.Group(t)
	keeper, err := localserver.StartZookeeper(group)
	if err != nil {
		t.Fatal(err)
	}
	etcd, err := localserver.StartEtcd(group)
	if err != nil {
		t.Fatal(err)
	}
	base := startServe(t, engine.Config{
		DB: db.URL(), Redis: urls[0], Redlock: urls[1:], Zookeeper: []string{keeper.Addr}, Etcd: []string{etcd.Addr},
	})
	webtest.Restock(t, base, "apple", 1000)

	status := func(path string) int { return webtest.Call(t, http.MethodGet, base+path, "", nil).Status }
	buy := func(strategy string) response {
		return webtest.Call(t, http.MethodGet, base+"/product/buy?lock="+strategy, "", nil)
	}
	works := func(strategy string) {
		t.Helper()
		if r := buy(strategy); r.Status != http.StatusOK {
			t.Errorf("%s: %d %s, want a sale", strategy, r.Status, r.Body)
		}
	}
	// down kills the server, checks which strategies are affected, and restarts it.
	down := func(name string, kill, start func() error, hurt, fine []string) {
		t.Helper()
		if err := kill(); err != nil {
			t.Fatal(err)
		}
		for _, strategy := range hurt {
			p := webtest.WantProblem(t, buy(strategy), http.StatusServiceUnavailable, "failed")
			if !strings.Contains(p.Detail, "the "+name+" is down") {
				t.Errorf("%s without %s: %q does not say what is down", strategy, name, p.Detail)
			}
		}
		for _, strategy := range fine {
			works(strategy)
		}
		p := webtest.WantProblem(t, webtest.Call(t, http.MethodGet, base+"/readyz", "", nil), http.StatusServiceUnavailable, "failed")
		if !strings.Contains(p.Detail, name) {
			t.Errorf("readiness %q does not name %s", p.Detail, name)
		}
		if got := status("/healthz"); got != http.StatusOK {
			t.Errorf("healthz %d while %s is down: the process runs", got, name)
		}
		if err := start(); err != nil {
			t.Fatal(err)
		}
		webtest.Eventually(t, "ready again", func() bool { return status("/readyz") == http.StatusOK })
		for _, strategy := range append(hurt, fine...) {
			works(strategy)
		}
	}
	sql := []string{"none", "mutex", "for-update", "optimistic", "conditional"}
	down("redis", nodes[0].Kill, nodes[0].Start, []string{"redis"}, append(sql, "redlock"))
	down("zookeeper", keeper.Kill, keeper.Start, []string{"zookeeper"}, append(sql, "etcd"))
	down("etcd", etcd.Kill, etcd.Start, []string{"etcd", "etcd-fenced"}, append(sql, "zookeeper"))
	down("database", db.Kill, db.Start, append(sql, "redis", "redlock", "zookeeper", "etcd-fenced"), nil)
	both := func(do func(*localserver.Redis) error) func() error {
		return func() error {
			if err := do(nodes[1]); err != nil {
				return err
			}
			return do(nodes[2])
		}
	}
	down("redlock", both((*localserver.Redis).Kill), both((*localserver.Redis).Start), []string{"redlock"}, append(sql, "redis"))

	// The strategies do not need a minority of the nodes.
	if err := nodes[3].Kill(); err != nil {
		t.Fatal(err)
	}
	works("redlock")
	if got := status("/readyz"); got != http.StatusOK {
		t.Errorf("readyz %d with two of three Redlock nodes", got)
	}
	if got := webtest.Audit(t, base, "apple"); got.Drift != 0 {
		t.Errorf("stock and records %+v, want no drift", got)
	}
}

// TestRestockWithoutRedis: a restock that cannot clear a lock changes neither stock nor records,
// and names the server. Of the Redlock nodes a majority is enough.
func TestRestockWithoutRedis(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 4)
	base := startServe(t, engine.Config{DB: "sqlite://" + t.TempDir() + "/shop.db", Redis: nodes[0].URL(), Redlock: urls(nodes[1:])})
	refused := func(server string) {
		t.Helper()
		before := webtest.Audit(t, base, "apple")
		p := webtest.WantProblem(t, webtest.Call(t, http.MethodPut, base+"/product/apple", `{"amount":7}`, nil), http.StatusServiceUnavailable, "failed")
		if !strings.Contains(p.Detail, "nothing was restocked: the "+server+" is down") {
			t.Errorf("%q does not say that the %s is down", p.Detail, server)
		}
		if after := webtest.Audit(t, base, "apple"); after != before {
			t.Errorf("stock and records %+v, before %+v", after, before)
		}
	}
	kill := func(node *localserver.Redis) {
		t.Helper()
		if err := node.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	kill(nodes[3])
	webtest.Restock(t, base, "apple", 50)
	kill(nodes[2])
	refused("redlock")
	if err := nodes[2].Start(); err != nil {
		t.Fatal(err)
	}
	kill(nodes[0])
	refused("redis")
}

// TestHungRedis: the error names a Redis that hangs, instead of reporting a busy lock.
func TestHungRedis(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 1)
	base := startServe(t, engine.Config{DB: "sqlite://" + t.TempDir() + "/shop.db", Redis: nodes[0].URL()}, func(s *setup) { s.Settings.LeaseTTL = time.Hour })
	for range 3 { // open connections: commands to a Redis that hangs wait there
		if r := webtest.Call(t, http.MethodGet, base+"/product/buy?lock=redis", "", nil); r.Status != http.StatusOK {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
	}
	if err := nodes[0].Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	p := webtest.WantProblem(t, webtest.Call(t, http.MethodGet, base+"/product/buy?lock=redis", "", nil), http.StatusServiceUnavailable, "failed")
	if !strings.Contains(p.Detail, "the redis is down") {
		t.Errorf("%q does not say what is down", p.Detail)
	}
	p = webtest.WantProblem(t, webtest.Call(t, http.MethodGet, base+"/readyz", "", nil), http.StatusServiceUnavailable, "failed")
	if !strings.Contains(p.Detail, "redis") || strings.Contains(p.Detail, "database") {
		t.Errorf("readiness %q, want redis alone", p.Detail)
	}
	if err := nodes[0].Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	webtest.Eventually(t, "sells again", func() bool {
		return webtest.Call(t, http.MethodGet, base+"/product/buy?lock=redis", "", nil).Status == http.StatusOK
	})
}

// TestHungDatabase: the error names a database that hangs, instead of reporting a long queue. A
// restock does not hold buyers back for it.
func TestHungDatabase(t *testing.T) {
	t.Parallel()
	db := localservertest.MySQL(t)
	base := startServe(t, engine.Config{DB: db.URL()}, waitFor(time.Second))
	if err := db.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for _, r := range []response{
		webtest.Call(t, http.MethodGet, base+"/product/buy?lock=for-update", "", nil),
		webtest.Call(t, http.MethodPost, base+"/product/buy", "", http.Header{"Idempotency-Key": {"k"}}),
		webtest.Call(t, http.MethodPut, base+"/product/apple", `{"amount":7}`, nil),
	} {
		p := webtest.WantProblem(t, r, http.StatusServiceUnavailable, "failed")
		if !strings.Contains(p.Detail, "the database is down") {
			t.Errorf("%q does not say what is down", p.Detail)
		}
	}
	if err := db.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	webtest.Eventually(t, "sells again", func() bool {
		return webtest.Call(t, http.MethodGet, base+"/product/buy?lock=for-update", "", nil).Status == http.StatusOK
	})
}

// TestSilentNode: a Redlock node that hangs costs only an occasional buyer its time-out, so all
// buyers are served within their wait.
func TestSilentNode(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 5)
	wait := 30 * time.Second // too short for 60 sales of half a second each
	base := startServe(t, engine.Config{DB: "sqlite://" + t.TempDir() + "/shop.db", Redlock: urls(nodes)}, waitFor(wait))
	if err := nodes[4].Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	target := rush.Target{BaseURL: base}
	result, err := rush.Run(t.Context(), rush.Config{
		BaseURLs: []string{base}, Shelf: target, Auditor: target, Strategy: "redlock", Product: "apple", Stock: 60, Buyers: 90,
		Timeout: wait + 30*time.Second, Progress: func(int) {},
	})
	if err != nil || result.Verdict != verdict.Holds || result.Sold != 60 {
		t.Errorf("%+v, %v; want 60 sales", result, err)
	}
}

// startNodes starts Redis servers for one test.
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

// TestRestockWithoutLocks: a restock that cannot clear a lock changes nothing.
func TestRestockWithoutLocks(t *testing.T) {
	t.Parallel()
	type server interface{ Kill() error }
	for _, c := range []struct {
		name  string
		start func(g *localserver.Group) (server, string, error)
	}{
		{"redis", func(g *localserver.Group) (server, string, error) {
			s, err := localserver.StartRedis(g)
			return s, s.URL(), err
		}},
		{"zookeeper", func(g *localserver.Group) (server, string, error) {
			s, err := localserver.StartZookeeper(g)
			return s, s.Addr, err
		}},
		{"etcd", func(g *localserver.Group) (server, string, error) {
			s, err := localserver.StartEtcd(g)
			return s, s.Addr, err
		}},
	} {
		t.Run(c.name, func(t *testing.T) { restockWithout(t, c.name, c.start) })
	}
}

func restockWithout[Server interface{ Kill() error }](t *testing.T, server string, start func(g *localserver.Group) (Server, string, error)) {
	node, address, err := start(localservertest.Group(t))
	if err != nil {
		t.Fatal(err)
	}
	on := engine.Config{DB: "sqlite://" + t.TempDir() + "/shop.db"}
	switch server {
	case "redis":
		on.Redis = address
	case "etcd":
		on.Etcd = []string{address}
	case "zookeeper":
		on.Zookeeper = []string{address}
	}
	base := startServe(t, on)
	before := webtest.Audit(t, base, "apple")
	if err := node.Kill(); err != nil {
		t.Fatal(err)
	}
	p := webtest.WantProblem(t, webtest.Call(t, http.MethodPut, base+"/product/apple", `{"amount":7}`, nil), http.StatusServiceUnavailable, "failed")
	if want := "the " + server + " is down"; !strings.Contains(p.Detail, want) {
		t.Errorf("%q, want %q", p.Detail, want)
	}
	if after := webtest.Audit(t, base, "apple"); after != before {
		t.Errorf("stock and records %+v, before %+v", after, before)
	}
}
