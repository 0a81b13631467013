package localserver

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
)

// A Pooled is a database that a pooler can stand in front of.
type Pooled interface {
	Database
	// Pooler starts one, in transaction mode. ErrMissing when the machine has none.
	Pooler() (*Server, error)
}

// Pooler starts PgBouncer. It gives each transaction any of its own connections to the
// server (pgbouncer.org, "Configuration", pool_mode).
func (p *Postgres) Pooler() (*Server, error) {
	bin, err := program("apt-get install pgbouncer, or brew install pgbouncer", "pgbouncer")
	if err != nil {
		return nil, err
	}
	dir, err := p.group.Dir("pgbouncer")
	if err != nil {
		return nil, err
	}
	if err := p.user.own(p.group, dir); err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(p.Addr)
	if err != nil {
		return nil, err
	}
	users, config := filepath.Join(dir, "users"), filepath.Join(dir, "pgbouncer.ini")
	if err := p.user.write(users, fmt.Sprintf("%q %q\n", "shop", p.password)); err != nil {
		return nil, err
	}
	return onFreePort(p.group, func(own int) (*Server, error) {
		err := p.user.write(config, fmt.Sprintf(`[databases]
shop = host=%s port=%s dbname=shop
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = md5
auth_file = %s
pool_mode = transaction
max_client_conn = 1000
default_pool_size = 100
`, host, port, own, users))
		if err != nil {
			return nil, err
		}
		s := newServer(p.group, "pgbouncer", dir, own)
		s.user = p.user // it refuses root
		s.command = []string{bin, config}
		s.probe = func() error {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			conn, err := pgx.Connect(ctx, fmt.Sprintf("postgres://shop:%s@%s/shop?sslmode=disable&default_query_exec_mode=exec", p.password, s.Addr))
			if err != nil {
				return err
			}
			return conn.Close(ctx)
		}
		return &s, s.Start()
	})
}
