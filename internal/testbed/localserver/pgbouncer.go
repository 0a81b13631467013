package localserver

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
)

// A Pooled is a database for which this package can start a connection pooler.
type Pooled interface {
	Database
	// Pooler starts a pooler in transaction mode. It returns ErrMissing if none is installed.
	Pooler() (*Server, error)
}

// Pooler starts PgBouncer. In transaction mode, each transaction of a client may run on another connection to
// the server (pgbouncer.org, "Configuration", pool_mode).
func (p *Postgres) Pooler() (*Server, error) {
	bin, err := findProgram("apt-get install pgbouncer, or brew install pgbouncer", "pgbouncer")
	if err != nil {
		return nil, err
	}
	in, err := p.group.newFolder("pgbouncer", p.in.user) // PgBouncer refuses to run as root
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(p.Addr)
	if err != nil {
		return nil, err
	}
	if err := in.write("users", fmt.Sprintf("%q %q\n", "shop", p.password)); err != nil {
		return nil, err
	}
	return onFreePort(p.group, func(own int) (*Server, error) {
		err := in.write("pgbouncer.ini", fmt.Sprintf(`[databases]
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
`, host, port, own, in.file("users")))
		if err != nil {
			return nil, err
		}
		s := newServer(p.group, "pgbouncer", in, own)
		s.command = []string{bin, in.file("pgbouncer.ini")}
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
