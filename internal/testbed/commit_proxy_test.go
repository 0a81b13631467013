package testbed

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

// TestCommitProxy: an armed proxy lets one COMMIT take place and drops its answer. It passes
// a ROLLBACK, and every COMMIT before and afterwards.
func TestCommitProxy(t *testing.T) {
	for name, db := range map[string]localserver.Database{"mariadb": localservertest.MySQL(t), "postgres": localservertest.Postgres(t)} {
		t.Run(name, func(t *testing.T) {
			proxy, err := NewCommitProxy(db.Address())
			require.NoError(t, err)
			defer proxy.Close()
			e, err := engine.Open(t.Context(), engine.Config{DB: strings.Replace(db.URL(), db.Address(), proxy.Addrs[0], 1)})
			require.NoError(t, err)
			defer e.Close()
			pool, err := e.DB.DB()
			require.NoError(t, err)
			require.NoError(t, expect.ErrorOf(pool.Exec("CREATE TABLE committed (id INT PRIMARY KEY)")))
			insert := func(id int, end func(*sql.Tx) error) error {
				tx, err := pool.BeginTx(context.Background(), nil)
				require.NoError(t, err)
				require.NoError(t, expect.ErrorOf(tx.Exec("INSERT INTO committed VALUES ("+string(rune('0'+id))+")")))
				return end(tx)
			}
			expect.NoError(t, insert(1, (*sql.Tx).Commit), "a COMMIT before the proxy is armed")
			proxy.Arm(1)
			if err := insert(2, (*sql.Tx).Rollback); err != nil || proxy.Dropped() != 0 {
				t.Errorf("a ROLLBACK: %v, %d answers dropped", err, proxy.Dropped())
			}
			if err := insert(3, (*sql.Tx).Commit); err == nil || proxy.Dropped() != 1 {
				t.Errorf("the COMMIT: %v, %d answers dropped; want an error and 1", err, proxy.Dropped())
			}
			expect.NoError(t, insert(4, (*sql.Tx).Commit), "the COMMIT after it")
			var n, sum int
			if err := pool.QueryRow("SELECT COUNT(*), SUM(id) FROM committed").Scan(&n, &sum); err != nil || n != 3 || sum != 8 {
				t.Errorf("%d rows with the sum %d, %v; want 1, 3 and 4", n, sum, err)
			}
		})
	}
}
