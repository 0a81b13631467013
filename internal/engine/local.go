package engine

import (
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/oversell/oversell/internal/testbed/localserver"
)

// LockServerNeeds lists the kinds of lock server that strategies may need.
func LockServerNeeds() []string { return []string{"redis", "redlock", "zookeeper", "etcd"} }

// startLocal starts the servers in parallel, since the database needs a second or two to create its files.
func startLocal(e *Engine) error {
	server, err := localserver.DatabaseNamed(e.URLs.LocalDB)
	if err != nil {
		return err
	}
	redis, err := localserver.RedisNamed(e.URLs.LocalRedis)
	if err != nil {
		return err
	}
	needs := e.URLs.Needs
	if needs == nil {
		needs = LockServerNeeds()
	}
	g, err := localserver.NewGroup()
	if err != nil {
		return err
	}
	e.onClose(g.Close)
	var (
		starts errgroup.Group
		db     localserver.Database
		locks  *localserver.LockServers
	)
	starts.Go(func() (err error) { db, err = server.Start(g); return err })
	starts.Go(func() (err error) {
		locks, err = localserver.StartLockServers(g, needs, redis, RedlockNodes, nil)
		return err
	})
	if err := starts.Wait(); err != nil {
		return err
	}
	e.Disposable = true
	if _, several := db.(*localserver.Galera); !several {
		e.Killable = db
	}
	led, lockServers := At(locks)
	e.URLs.DB, e.LockServers = db.URL(), lockServers
	e.URLs.Redis, e.URLs.Redlock, e.URLs.Zookeeper, e.URLs.Etcd = led.Redis, led.Redlock, led.Zookeeper, led.Etcd
	e.whyMissing = locks.WhyMissing
	for _, need := range LockServerNeeds() {
		if !slices.Contains(needs, need) {
			e.whyMissing[need] = fmt.Sprintf("this command has not started %s, because the requested strategies do not use it", need)
		}
	}
	return nil
}

// At returns the configuration that opens running lock servers, and the list of these servers.
func At(l *localserver.LockServers) (c Config, servers []LockServer) {
	if l.Redis != nil {
		c.Redis = l.Redis.URL()
		for _, server := range slices.Concat(l.Redis.Nodes(), l.Redis.Watchers()) {
			servers = append(servers, LockServer{"redis", server})
		}
	}
	for _, node := range l.Redlock {
		c.Redlock = append(c.Redlock, node.URL())
		servers = append(servers, LockServer{"redlock", node})
	}
	for _, member := range l.Zookeeper {
		c.Zookeeper = append(c.Zookeeper, member.Addr)
		servers = append(servers, LockServer{"zookeeper", member})
	}
	for _, member := range l.Etcd {
		c.Etcd = append(c.Etcd, member.Addr)
		servers = append(servers, LockServer{"etcd", member})
	}
	return c, servers
}
