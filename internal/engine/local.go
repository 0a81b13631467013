package engine

import (
	"golang.org/x/sync/errgroup"

	"github.com/oversell/oversell/internal/localserver"
)

// startLocal starts the servers side by side: the database takes a second or
// two to make its files.
func startLocal(e *Engine) error {
	server, err := localserver.DatabaseNamed(e.URLs.LocalDB)
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
		servers [1 + RedlockNodes]*localserver.Redis
	)
	starts.Go(func() (err error) {
		db, err = server.Start(g)
		return err
	})
	for i := range servers {
		starts.Go(func() (err error) {
			servers[i], err = localserver.StartRedis(g)
			return err
		})
	}
	startCoordination(e, &starts, g)
	if err := starts.Wait(); err != nil {
		return err
	}
	e.URLs.DB = db.URL()
	e.URLs.Redis = servers[0].URL()
	e.URLs.Redlock = nil
	for _, node := range servers[1:] {
		e.URLs.Redlock = append(e.URLs.Redlock, node.URL())
	}
	return nil
}
