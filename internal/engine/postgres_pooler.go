package engine

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// A pooler such as PgBouncer, in transaction mode, gives each transaction any connection
// of its own to the server. What belongs to a connection breaks then: a prepared
// statement is there twice or not at all, a setting is somebody else's, a lock of the
// session is left where nobody gives it back.

// pooled reports whether a pooler stands in between: the process that serves the
// connection is not the one that greeted.
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

// poolerWarning is what the shop does without, where a pooler stands in between.
const poolerWarning = "--db: a pooler stands in between: statements are not prepared, and lock_timeout, statement_timeout and " +
	"idle_in_transaction_session_timeout are not set; set them for the role"
