package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	sqlitedriver "github.com/glebarez/go-sqlite"
	"github.com/glebarez/sqlite"
	"github.com/pressly/goose/v3"
	"gorm.io/gorm"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/engine/sqlconn"
	"github.com/oversell/oversell/internal/engine/sqlerror"
)

func sqliteDatabase() database {
	return database{
		name: dialect.SQLite, schemes: []string{"sqlite"}, example: "sqlite:///folder/file.db",
		goose: goose.DialectSQLite3, open: openSQLite, alone: migrateAgain,
	}
}

// sqliteConns is two, since SQLite has one writer at a time, and a reader can run next to the writer. More
// connections would only wait in SQLite's busy handler, which sleeps between tries. The queue of database/sql
// does not sleep.
const sqliteConns = 2

func openSQLite(_ context.Context, e *Engine, u *url.URL) (err error) {
	if u.Host != "" || u.Opaque != "" || !strings.HasPrefix(u.Path, "/") || u.RawQuery != "" {
		return fmt.Errorf("%s names no file; %w", e.URLs.DB, errURL())
	}
	if info, err := os.Stat(filepath.Dir(u.Path)); err != nil || !info.IsDir() {
		return fmt.Errorf("folder %s does not exist; %w", filepath.Dir(u.Path), errURL())
	}
	if info, err := os.Stat(u.Path); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a folder; %w", u.Path, errURL())
	}
	// WAL lets readers run next to a writer. A second writer waits up to busy_timeout in SQLite's
	// back-off. A sale changes a few rows, so small pages mean less copying and writing.
	file := func(wait time.Duration, pragmas ...string) sqliteConnector {
		return sqliteConnector{"file:" + u.EscapedPath() + "?_pragma=page_size(1024)&_pragma=busy_timeout(" + strconv.FormatInt(wait.Milliseconds(), 10) +
			")&_pragma=journal_mode(WAL)&_pragma=" + strings.Join(pragmas, "&_pragma=")}
	}
	e.dialect = func(db *sql.DB) gorm.Dialector { return &sqlite.Dialector{Conn: db} }
	// Without temp_store, the statement journal of INSERT ... RETURNING allocates 64 KiB each time with mmap
	// and munmap (memjournal.c, sqlite3JournalOpen). A side effect of temp_store: large sorts also use memory.
	e.stepwise = file(0, "synchronous(OFF)", "temp_store(MEMORY)")
	e.Database, e.Server = dialect.SQLite, "SQLite "+sqlite3.SQLITE_VERSION
	e.URLs.Conns = sqliteConns
	const elsewhere = "; use --engine local, or set --db or SHOP_DB_URL"
	e.Lacks = map[string]string{
		dialect.NamedLocks: "SQLite has no locks by name" + elsewhere,
		dialect.SkipLocked: "SQLite has no row locks, and so no SKIP LOCKED" + elsewhere,
	}
	if e.Admin, err = e.pool(file(time.Minute, "synchronous(NORMAL)"), adminConns); err != nil {
		return err
	}
	e.DB, err = e.pool(e.URLs.wrapped(file(e.URLs.Wait, "synchronous(NORMAL)")), sqliteConns)
	return err
}

type sqliteConnector struct{ dsn string }

// Connect retries while another process turns the file to WAL or closes its last connection. SQLite then
// answers SQLITE_BUSY at once, without its busy handler (pragma journal_mode, wal.html section 8).
func (c sqliteConnector) Connect(ctx context.Context) (conn driver.Conn, err error) {
	open := func() error {
		conn, err = c.Driver().Open(c.dsn)
		return err
	}
	if sqlerror.KindOf(open()) == sqlerror.Contended {
		err = sqliteAgain(ctx, open)
	}
	if err != nil {
		return nil, err
	}
	return sqliteConn{conn.(sqlconn.Plain)}, nil
}

func (c sqliteConnector) Driver() driver.Driver { return &sqlitedriver.Driver{} }

// A sqliteConn does not interrupt a statement. If a context ends just before its statement begins, the driver
// runs nothing and returns no error (go-sqlite 1.21 and 1.23, stmt.exec). Then a BEGIN opens no transaction,
// and an UPDATE returns the row count of the previous statement. A context cannot end the wait for another
// writer anyway: SQLite's busy handler ignores interrupts.
type sqliteConn struct{ sqlconn.Plain }

func (c sqliteConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return c.Plain.ExecContext(context.WithoutCancel(ctx), query, args)
}

func (c sqliteConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return c.Plain.QueryContext(context.WithoutCancel(ctx), query, args)
}

// migrateAgain repeats a migration that meets a lock: SQLite has no named locks with which migrations could
// wait for each other. Each step is a transaction. On its next try, the process finds the work done by the
// other process.
func migrateAgain(ctx context.Context, _ *sql.DB, migrate func() error) error {
	return sqliteAgain(ctx, migrate)
}

const sqliteTries = 20

// sqliteAgain calls do until it succeeds, at most sqliteTries times.
func sqliteAgain(ctx context.Context, do func() error) error {
	err := do()
	for tries := 1; err != nil && tries < sqliteTries && ctx.Err() == nil; tries++ {
		time.Sleep(rand.N(100 * time.Millisecond))
		err = do()
	}
	return err
}
