package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/testbed"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// Servers are real servers that the faults may kill, restart and disturb. Each cell (one strategy under one
// fault) that runs at the same time as another has Servers of its own.
type Servers struct {
	sqlServer
	redisServers
	nodes     []*redisNode            // Redlock nodes
	ensembles localserver.LockServers // ZooKeeper and etcd, of three members each; empty until a Pair needs them
}

// A sqlServer is the database. It knows which server currently is the database, and which proxies are in front
// of it.
type sqlServer struct {
	Auditor rush.Database // reads the stock and the records

	db      localserver.Database
	engine  *engine.Engine // this process's own connections
	wait    time.Duration  // maximum wait of this process's own buyers
	pooling pooling
	commits *testbed.CommitProxy // nil until a fault needs it
	front   []string             // addresses (host:port) to which the shops' proxies lead instead of the database; the function behind sets them
}

// redisServers contains the Redis servers of the shops and knows which is primary.
type redisServers struct {
	group   *localserver.Group
	locks   *localserver.LockServers
	clocks  *clocks
	redis   *redisNode    // the lock server, with its replica, if Redis is one server
	replica *redisNode    // nil before the first failover
	cord    *testbed.Link // link through which the replica follows the primary; nil if it follows none
	redises *redisGroup   // lock servers, if Redis is several servers
}

// StartServers starts a database server of the kind `localDB` and the lock servers for `needs`. Redis has the
// topology `localRedis`, and Redlock has `redlockNodes` nodes. Call Close afterwards, even after an error.
func StartServers(ctx context.Context, localDB, localRedis string, redlockNodes int, wait time.Duration, needs []lockstrategy.Need) (*Servers, error) {
	s := &Servers{sqlServer: sqlServer{wait: wait}}
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
	starts.Go(func() error { return s.startLockServers(redis, redlockNodes, needs...) })
	if err := starts.Wait(); err != nil {
		return s, err
	}
	return s, s.reopen(ctx)
}

func (s *sqlServer) reopen(ctx context.Context) error {
	opened, err := engine.Open(ctx, engine.Config{DB: s.db.URL(), Wait: s.wait, Conns: 4})
	if err != nil {
		return err
	}
	if s.engine != nil {
		err = s.engine.Close()
	}
	s.engine, s.Auditor = opened, rush.Database{DB: opened.Admin, Nodes: opened.Cluster.DBs}
	return err
}

// startLockServers starts the servers for the needs. Each Redis has a clock that can be moved.
func (s *Servers) startLockServers(redis localserver.RedisServer, redlockNodes int, needs ...lockstrategy.Need) (err error) {
	var names []string
	for _, need := range needs {
		names = append(names, string(need))
	}
	if slices.Contains(needs, lockstrategy.NeedsRedis) || slices.Contains(needs, lockstrategy.NeedsRedlock) {
		if s.clocks, err = newClocks(s.group); err != nil {
			return err
		}
	}
	if s.locks, err = localserver.StartLockServers(s.group, names, redis, redlockNodes, s.clocks.environ); err != nil {
		return err
	}
	for i, node := range s.locks.Redlock {
		s.nodes = append(s.nodes, &redisNode{node, s.clocks.of(fmt.Sprintf("redlock-%d", i))})
	}
	if s.locks.Redis == nil {
		return nil
	}
	var nodes []*redisNode
	for i, node := range s.locks.Redis.Nodes() {
		nodes = append(nodes, &redisNode{node, s.clocks.of(fmt.Sprintf("redis-%d", i))})
	}
	if s.redis = nodes[0]; redis.Name != topology.Single {
		s.redis, s.redises = nil, &redisGroup{kind: redis.Name, service: s.locks.Redis, nodes: nodes}
	}
	return nil
}

// startReplica starts the replica for a failover by hand, unless the replica already runs.
func (s *redisServers) startReplica() (err error) {
	if s.replica != nil {
		return nil
	}
	if s.group == nil { // a Standby, the replica of a running rush, has no group yet
		if s.group, err = localserver.NewGroup(); err != nil {
			return err
		}
	}
	env, err := s.clocks.environ("replica")
	if err != nil {
		return err
	}
	r, err := localserver.StartRedisWith(s.group, env)
	if err != nil {
		return err
	}
	s.replica = &redisNode{r, s.clocks.of("replica")}
	return nil
}

// Absent says how to install a missing server that the need requires, or returns "".
func (s *Servers) Absent(need lockstrategy.Need) string { return s.locks.WhyMissing[string(need)] }

// Database returns the product and version of the database.
func (s *sqlServer) Database() string { return s.engine.Server }

// Close ends the servers.
func (s *Servers) Close() error {
	var errs []error
	if s.engine != nil {
		errs = append(errs, s.engine.Close())
	}
	if s.commits != nil {
		errs = append(errs, s.commits.Close())
	}
	if s.group != nil {
		errs = append(errs, s.group.Close())
	}
	return errors.Join(errs...)
}

// A Pair is two shops on the same servers. One Pair serves several fault injections, one after another.
type Pair struct{ A, B *CellShop }

// startEnsembles starts those of the needed ensembles that do not run yet. It skips an ensemble that is not
// installed.
func (s *Servers) startEnsembles(needs []lockstrategy.Need) (err error) {
	for _, need := range needs {
		switch {
		case s.locks.WhyMissing[string(need)] != "":
		case need == lockstrategy.NeedsZookeeper && s.ensembles.Zookeeper == nil:
			s.ensembles.Zookeeper, err = localserver.StartZookeeperEnsemble(s.group)
		case need == lockstrategy.NeedsEtcd && s.ensembles.Etcd == nil:
			s.ensembles.Etcd, err = localserver.StartEtcdCluster(s.group)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// StartPair starts two shops with the lock servers for the needs.
func (s *Servers) StartPair(ctx context.Context, launch Launch, times Times, needs []lockstrategy.Need) (Pair, error) {
	var (
		p      Pair
		starts errgroup.Group
	)
	if times.Ensembles {
		if err := s.startEnsembles(needs); err != nil {
			return Pair{}, err
		}
	}
	starts.Go(func() (err error) { p.A, err = s.startShop(ctx, 0, launch, times, needs); return err })
	starts.Go(func() (err error) { p.B, err = s.startShop(ctx, 1, launch, times, needs); return err })
	if err := starts.Wait(); err != nil {
		p.Stop()
		return Pair{}, err
	}
	return p, nil
}

// Restart ends a shop with SIGKILL and starts another in its place. After an error, the only permitted use of
// the returned shop is to stop it.
func (s *Servers) Restart(ctx context.Context, shop *CellShop, launch Launch, times Times, needs []lockstrategy.Need) (*CellShop, error) {
	shop.stop()
	next, err := s.startShop(ctx, shop.number, launch, times, needs)
	if err != nil {
		return shop, err
	}
	return next, nil
}

// RecordTo sends the shops' history to a log from now on. With a nil log, the history is dropped.
func (p Pair) RecordTo(log *history.Log) {
	p.A.recordTo(log)
	p.B.recordTo(log)
}

// Stop kills the shops. Call it only after all answers have arrived.
func (p Pair) Stop() {
	for _, shop := range []*CellShop{p.A, p.B} {
		if shop != nil {
			shop.stop()
		}
	}
}
