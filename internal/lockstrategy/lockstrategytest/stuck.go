package lockstrategytest

import (
	"context"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/require"
)

// stuck keeps a product's row locked, so that a buyer inside the critical section stays there.
type stuck struct {
	release func() // may be called twice
	db      *gorm.DB
	dialect dialect.Dialect
}

// keepRowLocked locks the row from its own connection until release. On SQLite, which has no row
// locks, it takes the file's write lock.
func (w *world) keepRowLocked(tb testing.TB, name string) *stuck {
	tb.Helper()
	db, err := w.engine.DB.DB()
	require.NoError(tb, err)
	conn, err := db.Conn(tb.Context())
	require.NoError(tb, err)
	s := &stuck{db: w.engine.DB, dialect: dialect.Of(w.engine.DB)}
	s.release = sync.OnceFunc(func() {
		expect.NoError(tb, expect.ErrorOf(conn.ExecContext(context.Background(), "ROLLBACK")), "unlock the row")
		_ = conn.Close()
	})
	tb.Cleanup(s.release)
	for _, statement := range lockRow(s.dialect, name) {
		require.NoError(tb, expect.ErrorOf(conn.ExecContext(tb.Context(), statement)), statement)
	}
	return s
}

// waitForVictims returns when n statements wait for the row. It returns at once if the database does not show
// waiting statements. Then the buyers may not have reached the row yet, and the test must pass all the same.
func (s *stuck) waitForVictims(tb testing.TB, n int) {
	tb.Helper()
	if s.dialect.RowWaits == "" {
		return
	}
	for deadline := time.Now().Add(stepTimeout); ; {
		var waits struct{ Value int }
		require.NoError(tb, s.db.WithContext(tb.Context()).Raw(s.dialect.RowWaits).Scan(&waits).Error)
		if waits.Value >= n {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("%d wait for the row, want %d", waits.Value, n)
		}
	}
}
