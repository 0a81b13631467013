// Package enginetest opens engines for tests: the embedded engine, and real servers that all tests of a
// package share. `make test` starts these servers and lends them; without it the package starts its own. Each
// test has its own database, Redis database number, and path in ZooKeeper and etcd.
package enginetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/engine/enginetest/serverset"
	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/tier"
)

// Wait is the maximum wait of a buyer in the test engines (Config.Wait). The row lock time-out of the database
// is a second longer.
const Wait = 5 * time.Second

// Lease is the session time-out of ZooKeeper. It is longer than a test.
const Lease = 2 * time.Minute

// Each runs the function test on the embedded engine and on real servers.
func Each(t *testing.T, test func(t *testing.T, open func(t *testing.T) *engine.Engine)) {
	t.Run(engine.Embedded, func(t *testing.T) { test(t, Embedded) })
	t.Run(engine.Local, func(t *testing.T) { test(t, Local) })
}

// EachDatabase runs the function test as Each does, and also on PostgreSQL.
func EachDatabase(t *testing.T, test func(t *testing.T, open func(t *testing.T) *engine.Engine)) {
	Each(t, test)
	t.Run(dialect.Postgres, func(t *testing.T) { test(t, Postgres) })
}

// EachCoordinated runs the function test as EachDatabase does. Under `make soak`, the real servers include
// ZooKeeper and etcd.
func EachCoordinated(t *testing.T, test func(t *testing.T, open func(t *testing.T) *engine.Engine)) {
	t.Run(engine.Embedded, func(t *testing.T) { test(t, Embedded) })
	t.Run(engine.Local, func(t *testing.T) { test(t, Coordinated) })
	t.Run(dialect.Postgres, func(t *testing.T) { test(t, CoordinatedPostgres) })
}

// Embedded opens an embedded engine for one test.
func Embedded(t *testing.T) *engine.Engine {
	t.Helper()
	return EmbeddedWith(t, nil)
}

// EmbeddedWith opens an embedded engine with these lock servers (names in engine.LockServerNeeds). The
// explorer, which tries interleavings, is faster without servers that a strategy does not need.
func EmbeddedWith(t *testing.T, needs []string) *engine.Engine {
	t.Helper()
	return open(t, engine.Config{Name: engine.Embedded, Needs: needs, Wait: Wait, Conns: 16})
}

// borrowed returns the set of servers that `make test` lends, or nil if this test binary has to start its own.
var borrowed = sync.OnceValues(serverset.Borrow)

// local opens the borrowed servers, or starts servers once per test binary. A janitor process ends the started
// servers when the binary ends.
var local = sync.OnceValues(func() (*engine.Engine, error) {
	set, err := borrowed()
	if err != nil {
		return nil, err
	}
	if set == nil {
		return engine.Open(context.Background(), engine.Config{Name: engine.Local, Needs: []string{"redis", "redlock"}, Wait: Wait, Conns: 4})
	}
	e, err := engine.Open(context.Background(), engine.Config{DB: set.MySQL, Redis: set.Redis, Redlock: set.Redlock, Wait: Wait, Conns: 4})
	if err != nil {
		return nil, err
	}
	// The test binary that used the set before has left keys in the databases that this binary will use.
	for _, server := range append([]redis.UniversalClient{e.Redis}, e.Redlock...) {
		if err := server.FlushAll(context.Background()).Err(); err != nil {
			return nil, err
		}
	}
	return e, nil
})

// coordination starts ZooKeeper and etcd once per test binary, since few packages need them.
var coordination = sync.OnceValues(func() (*localserver.LockServers, error) {
	group, err := localserver.NewGroup()
	if err != nil {
		return nil, err
	}
	return localserver.StartLockServers(group, []string{"zookeeper", "etcd"}, localserver.RedisServer{}, 0, nil)
})

var redisNumber atomic.Int64

// Local opens real servers. If a program is missing, the test fails with the command that installs
// it. make quick skips the test.
func Local(t *testing.T) *engine.Engine {
	t.Helper()
	return open(t, onLocal(t))
}

func onLocal(t *testing.T) engine.Config {
	t.Helper()
	tier.Test(t, "needs servers")
	servers := running(t, local)
	name := testName()
	return shared(servers, name, database(t, servers, name))
}

// Coordinated opens what Local does, and under make soak also ZooKeeper and etcd.
func Coordinated(t *testing.T) *engine.Engine {
	t.Helper()
	return open(t, coordinated(t, onLocal(t)))
}

// CoordinatedPostgres opens what Postgres does, and under make soak also ZooKeeper and etcd.
func CoordinatedPostgres(t *testing.T) *engine.Engine {
	t.Helper()
	return open(t, coordinated(t, onPostgres(t)))
}

// coordinated adds paths in ZooKeeper and etcd that belong to this test.
func coordinated(t *testing.T, c engine.Config) engine.Config {
	t.Helper()
	if !tier.Soaking() {
		return c
	}
	servers, err := coordination()
	require.NoError(t, err, "local servers")
	for _, absent := range servers.WhyMissing {
		t.Fatal(absent)
	}
	at, _ := engine.At(servers)
	name := testName()
	c.Zookeeper, c.Etcd = under(name, at.Zookeeper), under(name, at.Etcd)
	return c
}

// running returns servers that all tests of a package share.
func running(t *testing.T, start func() (*engine.Engine, error)) *engine.Engine {
	t.Helper()
	e, err := start()
	require.NoError(t, err, "local servers")
	return e
}

func database(t *testing.T, e *engine.Engine, name string) string {
	t.Helper()
	require.NoError(t, e.DB.Exec("CREATE DATABASE "+name+" CHARACTER SET utf8mb4").Error)
	return strings.TrimSuffix(e.URLs.DB, "/shop") + "/" + name
}

func testName() string { return "test_" + strings.ToLower(rand.Text()[:12]) }

// shared returns the configuration with which one test uses the shared servers.
func shared(servers *engine.Engine, name, db string) engine.Config {
	number := fmt.Sprintf("/%d", redisNumber.Add(1))
	c := engine.Config{
		DB: db, Redis: servers.URLs.Redis + number, Wait: Wait, Conns: 16,
		Lease: Lease,
	}
	for _, node := range servers.URLs.Redlock {
		c.Redlock = append(c.Redlock, node+number)
	}
	return c
}

// Postgres opens a schema for one test on the shared PostgreSQL, with the lock servers of Local. A schema
// takes a quarter of the time that a database would take.
func Postgres(t *testing.T) *engine.Engine {
	t.Helper()
	return open(t, onPostgres(t))
}

func onPostgres(t *testing.T) engine.Config {
	t.Helper()
	tier.Test(t, "needs servers")
	servers, admin := running(t, local), running(t, postgres)
	name := testName()
	require.NoError(t, admin.DB.Exec("CREATE SCHEMA "+name).Error)
	return shared(servers, name, admin.URLs.DB+"&search_path="+name)
}

// Redis opens the lock servers of Local with a shared Redis of the given topology. It empties that
// Redis first, so its tests must not run in parallel.
func Redis(t *testing.T, kind string) *engine.Engine {
	t.Helper()
	tier.Test(t, "needs servers")
	service, err := shares.of(kind)
	require.NoError(t, err, "local servers")
	servers := running(t, local)
	name := testName()
	c := shared(servers, name, database(t, servers, name))
	c.Redis = service.URL()
	e := open(t, c)
	err = topology.EachPrimary(t.Context(), e.Redis, func(node redis.UniversalClient) error { return node.FlushAll(t.Context()).Err() })
	require.NoError(t, err)
	return e
}

// shares contains the Redis servers that the function Redis has started, by topology.
var shares services

type services struct {
	mu      sync.Mutex
	started map[string]localserver.RedisService
}

func (s *services) of(kind string) (localserver.RedisService, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if service, ok := s.started[kind]; ok {
		return service, nil
	}
	server, err := localserver.RedisNamed(kind)
	if err != nil {
		return nil, err
	}
	group, err := localserver.NewGroup()
	if err != nil {
		return nil, err
	}
	service, err := server.Start(group, nil)
	if err != nil {
		return nil, errors.Join(err, group.Close())
	}
	if s.started == nil {
		s.started = map[string]localserver.RedisService{}
	}
	s.started[kind] = service
	return service, nil
}

// postgres and galera start their servers once per test binary, like local.
var (
	postgres = sync.OnceValues(func() (*engine.Engine, error) {
		set, err := borrowed()
		if err != nil || set == nil {
			return started(localserver.StartPostgres)
		}
		return engine.Open(context.Background(), engine.Config{DB: set.Postgres, Wait: Wait, Conns: 4})
	})
	galera = sync.OnceValues(func() (*engine.Engine, error) { return started(localserver.StartGalera) })
)

func started[Server localserver.Database](start func(*localserver.Group) (Server, error)) (*engine.Engine, error) {
	group, err := localserver.NewGroup()
	if err != nil {
		return nil, err
	}
	server, err := start(group)
	if err != nil {
		return nil, errors.Join(err, group.Close())
	}
	return engine.Open(context.Background(), engine.Config{DB: server.URL(), Wait: Wait, Conns: 4})
}

// Galera opens a database for one test on the shared cluster, with the lock servers of Local. `process` is the
// index of the shop's process; it selects the node.
func Galera(t *testing.T, process int) *engine.Engine {
	t.Helper()
	tier.Test(t, "needs servers")
	servers, admin := running(t, local), running(t, galera)
	name := testName()
	c := shared(servers, name, database(t, admin, name))
	c.Process = process
	return open(t, c)
}

// At opens the servers of e again, as another process of the same shop.
func At(t *testing.T, e *engine.Engine, process int) *engine.Engine {
	t.Helper()
	c := e.URLs
	c.Process = process
	return open(t, c)
}

// under returns the hosts with the test's own path after the last one.
func under(name string, hosts []string) []string {
	if len(hosts) == 0 {
		return nil
	}
	return append(slices.Clone(hosts[:len(hosts)-1]), hosts[len(hosts)-1]+"/"+name)
}

func open(t *testing.T, c engine.Config) *engine.Engine {
	t.Helper()
	e, err := engine.Open(t.Context(), c)
	require.NoError(t, err, "open the engine")
	e.Disposable = true // the database belongs to the test
	t.Cleanup(func() {
		expect.NoError(t, e.Close(), "close the engine")
	})
	return e
}
