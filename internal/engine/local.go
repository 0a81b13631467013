package engine

import (
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/oversell/oversell/internal/testbed/localserver"
)

// startLocal starts the servers side by side: the database takes a second or
// two to make its files.
func startLocal(e *Engine) error {
	server, err := localserver.DatabaseNamed(e.URLs.LocalDB)
	if err != nil {
		return err
	}
	redis, err := localserver.RedisNamed(e.URLs.LocalRedis)
	if err != nil {
		return err
	}
	g, err := localserver.NewGroup()
	if err != nil {
		return err
	}
	e.onClose(g.Close)
	var (
		starts  errgroup.Group
		db      localserver.Database
		service localserver.RedisService
		nodes   [RedlockNodes]*localserver.Redis
	)
	starts.Go(func() (err error) {
		db, err = server.Start(g)
		return err
	})
	starts.Go(func() (err error) {
		service, err = redis.Start(g, nil)
		return err
	})
	for i := range nodes {
		starts.Go(func() (err error) {
			nodes[i], err = localserver.StartRedis(g)
			return err
		})
	}
	startCoordination(e, &starts, g)
	if err := starts.Wait(); err != nil {
		return err
	}
	e.Disposable = true
	e.URLs.DB = db.URL()
	e.URLs.Redis = service.URL()
	if _, several := db.(*localserver.Galera); !several {
		e.Killable = db
	}
	for _, server := range slices.Concat(service.Nodes(), service.Watchers()) {
		e.LockServers = append(e.LockServers, LockServer{"redis", server})
	}
	e.URLs.Redlock = nil
	for _, node := range nodes {
		e.URLs.Redlock = append(e.URLs.Redlock, node.URL())
		e.LockServers = append(e.LockServers, LockServer{"redlock", node})
	}
	return nil
}
