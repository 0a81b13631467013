package main

import (
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

// TestOutage: a server that is killed is named in a 503, readiness says so,
// strategies that do not need it go on, and all is well when it is back.
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
	base := startServe(t, "--db", db.URL(), "--redis", urls[0], "--redlock", strings.Join(urls[1:], ","),
		"--zookeeper", keeper.Addr, "--etcd", etcd.Addr)
	restock(t, base, "apple", 1000)

	status := func(path string) int { return call(t, http.MethodGet, base+path, "", nil).status }
	buy := func(strategy string) response {
		return call(t, http.MethodGet, base+"/product/buy?lock="+strategy, "", nil)
	}
	works := func(strategy string) {
		t.Helper()
		if r := buy(strategy); r.status != http.StatusOK {
			t.Errorf("%s: %d %s, want a sale", strategy, r.status, r.body)
		}
	}
	// down kills the server, checks who is hurt, and brings it back.
	down := func(name string, kill, start func() error, hurt, fine []string) {
		t.Helper()
		if err := kill(); err != nil {
			t.Fatal(err)
		}
		for _, strategy := range hurt {
			p := wantProblem(t, buy(strategy), http.StatusServiceUnavailable, "failed")
			if !strings.Contains(p.Detail, "the "+name+" is down") {
				t.Errorf("%s without %s: %q does not say what is down", strategy, name, p.Detail)
			}
		}
		for _, strategy := range fine {
			works(strategy)
		}
		p := wantProblem(t, call(t, http.MethodGet, base+"/readyz", "", nil), http.StatusServiceUnavailable, "failed")
		if !strings.Contains(p.Detail, name) {
			t.Errorf("readiness %q does not name %s", p.Detail, name)
		}
		if got := status("/healthz"); got != http.StatusOK {
			t.Errorf("healthz %d while %s is down: the process runs", got, name)
		}
		if err := start(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "ready again", func() bool { return status("/readyz") == http.StatusOK })
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

	// A minority of the nodes is not missed.
	if err := nodes[3].Kill(); err != nil {
		t.Fatal(err)
	}
	works("redlock")
	if got := status("/readyz"); got != http.StatusOK {
		t.Errorf("readyz %d with two of three Redlock nodes", got)
	}
	if got := books(t, base, "apple"); got.Drift != 0 {
		t.Errorf("books %+v, want no drift", got)
	}
}

// TestRestockWithoutRedis: a restock that cannot clear a lock changes neither
// stock nor records, and says which server is down. Of the Redlock nodes a
// majority is enough.
func TestRestockWithoutRedis(t *testing.T) {
	nodes := startNodes(t, 4)
	base := startServe(t, "--db", "sqlite://"+t.TempDir()+"/shop.db", "--redis", nodes[0].URL(),
		"--redlock", strings.Join(urls(nodes[1:]), ","))
	refused := func(server string) {
		t.Helper()
		before := books(t, base, "apple")
		p := wantProblem(t, call(t, http.MethodPut, base+"/product/apple", `{"amount":7}`, nil), http.StatusServiceUnavailable, "failed")
		if !strings.Contains(p.Detail, "nothing was restocked: the "+server+" is down") {
			t.Errorf("%q does not say that the %s is down", p.Detail, server)
		}
		if after := books(t, base, "apple"); after != before {
			t.Errorf("books %+v, before %+v", after, before)
		}
	}
	kill := func(node *localserver.Redis) {
		t.Helper()
		if err := node.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	kill(nodes[3])
	restock(t, base, "apple", 50)
	kill(nodes[2])
	refused("redlock")
	if err := nodes[2].Start(); err != nil {
		t.Fatal(err)
	}
	kill(nodes[0])
	refused("redis")
}

// TestHungRedis: a Redis that hangs is named, and is not told as a busy lock.
func TestHungRedis(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 1)
	base := startServe(t, "--db", "sqlite://"+t.TempDir()+"/shop.db", "--redis", nodes[0].URL(), "--lease", "1h")
	for range 3 { // connections are open: what is sent to a Redis that hangs waits there for it
		if r := call(t, http.MethodGet, base+"/product/buy?lock=redis", "", nil); r.status != http.StatusOK {
			t.Fatalf("%d %s", r.status, r.body)
		}
	}
	if err := nodes[0].Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	p := wantProblem(t, call(t, http.MethodGet, base+"/product/buy?lock=redis", "", nil), http.StatusServiceUnavailable, "failed")
	if !strings.Contains(p.Detail, "the redis is down") {
		t.Errorf("%q does not say what is down", p.Detail)
	}
	p = wantProblem(t, call(t, http.MethodGet, base+"/readyz", "", nil), http.StatusServiceUnavailable, "failed")
	if !strings.Contains(p.Detail, "redis") || strings.Contains(p.Detail, "database") {
		t.Errorf("readiness %q, want redis alone", p.Detail)
	}
	if err := nodes[0].Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, "sells again", func() bool {
		return call(t, http.MethodGet, base+"/product/buy?lock=redis", "", nil).status == http.StatusOK
	})
}

// TestHungDatabase: a database that hangs is named, and is not told as a line
// that is too long; a restock does not hold the buyers back for it.
func TestHungDatabase(t *testing.T) {
	t.Parallel()
	db := localservertest.MySQL(t)
	base := startServe(t, "--db", db.URL(), "--wait", "1s")
	if err := db.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for _, r := range []response{
		call(t, http.MethodGet, base+"/product/buy?lock=for-update", "", nil),
		call(t, http.MethodPost, base+"/product/buy", "", http.Header{"Idempotency-Key": {"k"}}),
		call(t, http.MethodPut, base+"/product/apple", `{"amount":7}`, nil),
	} {
		p := wantProblem(t, r, http.StatusServiceUnavailable, "failed")
		if !strings.Contains(p.Detail, "the database is down") {
			t.Errorf("%q does not say what is down", p.Detail)
		}
	}
	if err := db.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, "sells again", func() bool {
		return call(t, http.MethodGet, base+"/product/buy?lock=for-update", "", nil).status == http.StatusOK
	})
}

// TestSilentNode: a Redlock node that hangs costs one buyer in a while its
// time-out, not each of them: the crowd still gets through within its wait.
func TestSilentNode(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 5)
	base := startServe(t, "--db", "sqlite://"+t.TempDir()+"/shop.db", "--redlock", strings.Join(urls(nodes), ","),
		"--wait", "30s") // 60 sales of half a second and more would not fit
	if err := nodes[4].Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := exitCode(t, "rush", "--target", base, "--strategy", "redlock", "--stock", "60", "--buyers", "90", "--expect")
	if code != 0 {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
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
		flag  string
		start func(g *localserver.Group) (server, string, error)
	}{
		{"--redis", func(g *localserver.Group) (server, string, error) {
			s, err := localserver.StartRedis(g)
			return s, s.URL(), err
		}},
		{"--zookeeper", func(g *localserver.Group) (server, string, error) {
			s, err := localserver.StartZookeeper(g)
			return s, s.Addr, err
		}},
		{"--etcd", func(g *localserver.Group) (server, string, error) {
			s, err := localserver.StartEtcd(g)
			return s, s.Addr, err
		}},
	} {
		t.Run(c.flag, func(t *testing.T) { restockWithout(t, c.flag, c.start) })
	}
}

func restockWithout[Server interface{ Kill() error }](t *testing.T, flag string, start func(g *localserver.Group) (Server, string, error)) {
	node, address, err := start(localservertest.Group(t))
	if err != nil {
		t.Fatal(err)
	}
	base := startServe(t, "--db", "sqlite://"+t.TempDir()+"/shop.db", flag, address)
	before := books(t, base, "apple")
	if err := node.Kill(); err != nil {
		t.Fatal(err)
	}
	p := wantProblem(t, call(t, http.MethodPut, base+"/product/apple", `{"amount":7}`, nil), http.StatusServiceUnavailable, "failed")
	if want := "the " + strings.TrimPrefix(flag, "--") + " is down"; !strings.Contains(p.Detail, want) {
		t.Errorf("%q, want %q", p.Detail, want)
	}
	if after := books(t, base, "apple"); after != before {
		t.Errorf("books %+v, before %+v", after, before)
	}
}
