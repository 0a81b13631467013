package fault

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// Servers are real ones that the faults may kill, restart and mislead. Plays that
// run side by side have servers of their own.
type Servers struct {
	Auditor rush.Database     // reads the stock and the records
	Absent  map[string]string // by server that is not installed: how to get it

	group     *localserver.Group
	engine    *engine.Engine // this process's own connections
	db        localserver.Database
	pooling   pooling
	front     string        // what a link of each shop leads to instead of db, host:port; see Testbed.behind
	wait      time.Duration // of this process's own buyers
	redis     *redisNode    // these two where Redis is one server
	replica   *redisNode    // nil before the first failover
	redises   *redisGroup   // and this where it is several
	asked     bool          // a fault had it fail over, see Undisturbed
	replaced  *redisNode    // the primary that a fault took away, and
	elected   *redisNode    // the replica that was elected for it; nil where any may be
	nodes     []*redisNode
	zookeeper *localserver.Zookeeper
	etcd      *localserver.Etcd
	noShim    string // why clocks cannot be moved, "" when they can
	shim      string // by which they are moved, see clock
	clockDir  string // with the shim, and the offset of each clock
}

// redisNode is a Redis with a clock that can be moved; nil where it cannot.
type redisNode struct {
	*localserver.Redis
	clock *clock
}

// StartServers starts the database server that localDB names and the lock servers that needs
// names, with Redis as localRedis names it. ZooKeeper and etcd may be absent. Close must follow,
// also after an error.
func StartServers(ctx context.Context, localDB, localRedis string, wait time.Duration, needs []lockstrategy.Need) (*Servers, error) {
	s := &Servers{Absent: map[string]string{}, wait: wait}
	database, err := localserver.DatabaseNamed(localDB)
	if err != nil {
		return s, err
	}
	redis, err := localserver.RedisNamed(localRedis)
	if err != nil {
		return s, err
	}
	if s.group, err = localserver.NewGroup(); err != nil {
		return s, err
	}
	var starts errgroup.Group
	starts.Go(func() (err error) { s.db, err = database.Start(s.group); return err })
	if slices.Contains(needs, lockstrategy.NeedsRedis) || slices.Contains(needs, lockstrategy.NeedsRedlock) {
		if err := s.prepareClocks(); err != nil {
			return s, errors.Join(err, starts.Wait())
		}
	}
	var zookeeper, etcd error
	for _, server := range []struct {
		need  lockstrategy.Need
		start func() error
	}{
		{lockstrategy.NeedsRedis, func() error { return s.startLockServer(redis) }},
		{lockstrategy.NeedsRedlock, s.startNodes},
		{lockstrategy.NeedsZookeeper, func() (err error) {
			s.zookeeper, err = localserver.StartZookeeper(s.group)
			return orAbsent(&zookeeper, err)
		}},
		{lockstrategy.NeedsEtcd, func() (err error) { s.etcd, err = localserver.StartEtcd(s.group); return orAbsent(&etcd, err) }},
	} {
		if slices.Contains(needs, server.need) {
			starts.Go(server.start)
		}
	}
	if err := starts.Wait(); err != nil {
		return s, err
	}
	for server, absent := range map[string]error{"zookeeper": zookeeper, "etcd": etcd} {
		if absent != nil {
			s.Absent[server] = absent.Error()
		}
	}
	return s, s.reopen(ctx)
}

// prepareClocks builds the shim by which the clock of each Redis can be moved, where this machine
// has a C compiler.
func (s *Servers) prepareClocks() (err error) {
	if s.clockDir, err = s.group.Dir("clock"); err != nil {
		return err
	}
	if s.shim, err = buildShim(s.clockDir); err != nil {
		s.noShim = err.Error()
	}
	return nil
}

// reopen opens this process's own connections to the database, which may be another one
// now.
func (s *Servers) reopen(ctx context.Context) error {
	opened, err := engine.Open(ctx, engine.Config{DB: s.db.URL(), Wait: s.wait, Conns: 4})
	if err != nil {
		return err
	}
	if s.engine != nil {
		err = s.engine.Close()
	}
	s.engine, s.Auditor = opened, rush.Database{DB: opened.Admin, Nodes: opened.NodeDBs}
	return err
}

// startLockServer starts the Redis of the shops: one, or several that fail over by themselves.
func (s *Servers) startLockServer(server localserver.RedisServer) (err error) {
	if server.Name == topology.Single {
		s.redis, err = s.startRedis("redis-primary")
		return err
	}
	clocks, env := make([]*clock, server.Nodes()), make([][]string, server.Nodes())
	for i := range clocks {
		if clocks[i], err = s.newClock(fmt.Sprintf("node-%d", i)); err != nil {
			return err
		}
		env[i] = clocks[i].environ()
	}
	service, err := server.Start(s.group, env)
	if err != nil {
		return err
	}
	s.redises = &redisGroup{kind: server.Name, service: service}
	for i, node := range service.Nodes() {
		s.redises.nodes = append(s.redises.nodes, &redisNode{node, clocks[i]})
	}
	return nil
}

// startNodes starts the Redlock nodes.
func (s *Servers) startNodes() error {
	s.nodes = make([]*redisNode, engine.RedlockNodes)
	var starts errgroup.Group
	for i := range s.nodes {
		starts.Go(func() (err error) {
			s.nodes[i], err = s.startRedis(fmt.Sprintf("offset-%d", i))
			return err
		})
	}
	return starts.Wait()
}

// startRedis starts a Redis. Its clock is moved by a file of that name.
func (s *Servers) startRedis(clockFile string) (*redisNode, error) {
	c, err := s.newClock(clockFile)
	if err != nil {
		return nil, err
	}
	r, err := localserver.StartRedisWith(s.group, c.environ())
	return &redisNode{r, c}, err
}

// newClock returns the clock of a server that is about to start; nil where clocks cannot be moved.
func (s *Servers) newClock(file string) (*clock, error) {
	if s.shim == "" {
		return nil, nil
	}
	return newClock(s.shim, filepath.Join(s.clockDir, file))
}

// Database is the product and the version of the database.
func (s *Servers) Database() string { return s.engine.Server }

// Close ends the servers.
func (s *Servers) Close() error {
	var errs []error
	if s.engine != nil {
		errs = append(errs, s.engine.Close())
	}
	if s.group != nil {
		errs = append(errs, s.group.Close())
	}
	return errors.Join(errs...)
}

// orAbsent notes that a server is not installed, which concerns its strategies only.
func orAbsent(absent *error, err error) error {
	if errors.Is(err, localserver.ErrMissing) {
		*absent = err
		return nil
	}
	return err
}

// A Pair is two shops on the same servers, for one play after another.
type Pair struct{ A, B *Shop }

// StartPair starts two shops side by side, with the lock servers that needs names.
func (s *Servers) StartPair(ctx context.Context, launch Launch, times Times, needs []lockstrategy.Need) (Pair, error) {
	var (
		p      Pair
		starts errgroup.Group
	)
	starts.Go(func() (err error) { p.A, err = s.startShop(ctx, 0, launch, times, needs); return err })
	starts.Go(func() (err error) { p.B, err = s.startShop(ctx, 1, launch, times, needs); return err })
	if err := starts.Wait(); err != nil {
		p.Stop()
		return Pair{}, err
	}
	return p, nil
}

// Restart ends a shop with SIGKILL and starts another in its place. When it fails, the
// shop that is returned may be stopped, and no more.
func (s *Servers) Restart(ctx context.Context, shop *Shop, launch Launch, times Times, needs []lockstrategy.Need) (*Shop, error) {
	shop.stop()
	next, err := s.startShop(ctx, shop.number, launch, times, needs)
	if err != nil {
		return shop, err
	}
	return next, nil
}

// RecordTo adds the shops' history to that log from now on; nil drops it.
func (p Pair) RecordTo(log *history.Log) {
	p.A.recordTo(log)
	p.B.recordTo(log)
}

// Stop kills the shops: the play is over, and its answers are in.
func (p Pair) Stop() {
	for _, shop := range []*Shop{p.A, p.B} {
		if shop != nil {
			shop.stop()
		}
	}
}
