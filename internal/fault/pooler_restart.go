package fault

import (
	"context"
	"errors"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// poolerRestart kills and restarts a connection pooler in transaction mode, between the shops and
// the database, while buyers of both shops buy.
func poolerRestart() Fault {
	return Fault{
		Name: "pooler-restart", About: "the connection pooler is killed under load and restarts", On: dialect.Postgres, Stock: 160,
		Inject: func(ctx context.Context, t *Testbed) (string, error) {
			pooler, err := t.Servers.pooler()
			if errors.Is(err, localserver.ErrMissing) {
				return "", missed("%v", err)
			}
			if err != nil {
				return "", err
			}
			if err := behind(ctx, t, pooler.Address()); err != nil {
				return "", err
			}
			return outage{
				server: "pooler", addresses: []string{pooler.Address()},
				lose: pooler.Kill, lost: "SIGKILL of the pooler", restore: pooler.Start, restored: "the pooler is back",
			}.underLoad(ctx, t)
		},
	}
}

type pooling struct {
	*localserver.Server
	to string // the database's address
}

// pooler starts a connection pooler, or returns the one that an earlier fault has started.
func (s *sqlServer) pooler() (*localserver.Server, error) {
	db, ok := s.db.(localserver.Pooled)
	if !ok {
		return nil, errors.New("this database has no pooler here")
	}
	if s.pooling.Server != nil {
		if s.pooling.to == db.Address() {
			return s.pooling.Server, nil
		}
		if err := s.pooling.Kill(); err != nil { // the database has failed over
			return nil, err
		}
	}
	pooler, err := db.Pooler()
	if err != nil {
		return nil, err
	}
	s.pooling = pooling{pooler, db.Address()}
	return pooler, nil
}
