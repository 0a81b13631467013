package engine

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// A pooler such as PgBouncer, in transaction mode, may give each transaction another connection to the server.
// So the shop cannot rely on the state of a connection. A prepared statement may be missing or exist twice,
// and a setting may belong to another client. A session lock may never be released.

// pooled reports whether the connection goes through a pooler. It does if the process that executes statements
// is not the one that opened the connection.
func pooled(ctx context.Context, c *pgx.ConnConfig) (bool, error) {
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return false, err
	}
	defer conn.Close(ctx)
	var pid uint32
	err = conn.QueryRow(ctx, "SELECT pg_backend_pid()", pgx.QueryExecModeExec).Scan(&pid)
	return pid != conn.PgConn().PID(), err
}

// poolerWarning lists what the shop cannot use behind a pooler.
const poolerWarning = "--db: a pooler stands in between: statements are not prepared, and lock_timeout, statement_timeout and " +
	"idle_in_transaction_session_timeout are not set; set them for the role"
