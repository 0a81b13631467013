package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	sqlitedriver "github.com/glebarez/go-sqlite"
	"github.com/glebarez/sqlite"
	mysqldriver "github.com/go-sql-driver/mysql"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// adminConns: one for a restock or a migration, one for readiness checks, one to spare.
const adminConns = 3

// errURL is what the user reads when --db is not a URL that this room can open.
var errURL = errors.New("give mysql://user:password@host:3306/database, or sqlite:///path/to/file with the whole path")

// openDB opens two pools on one database: DB for the buyers, and Admin for work that
// must not wait behind them or be cut off by their time-outs.
func (e *Engine) openDB(ctx context.Context) error {
	u, err := url.Parse(e.URLs.DB)
	if err != nil { // its text would show the password
		return fmt.Errorf("not a URL; %w", errURL)
	}
	switch u.Scheme {
	case "sqlite":
		return e.openSQLite(u)
	case "mysql", "mariadb":
		return e.openMySQL(ctx, u)
	}
	return fmt.Errorf("scheme %q is not known; %w", u.Scheme, errURL)
}

func (e *Engine) openSQLite(u *url.URL) (err error) {
	if u.Host != "" || u.Opaque != "" || !strings.HasPrefix(u.Path, "/") || u.RawQuery != "" {
		return fmt.Errorf("%s names no file; %w", e.URLs.DB, errURL)
	}
	if info, err := os.Stat(filepath.Dir(u.Path)); err != nil || !info.IsDir() {
		return fmt.Errorf("there is no folder %s; %w", filepath.Dir(u.Path), errURL)
	}
	if info, err := os.Stat(u.Path); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a folder; %w", u.Path, errURL)
	}
	// WAL lets readers read beside a writer; a second writer waits up to
	// busy_timeout in SQLite's own back-off. A sale changes a few rows: with small
	// pages, of a file that is made now, it copies and writes less.
	file := func(wait time.Duration, pragmas ...string) sqliteConnector {
		return sqliteConnector{"file:" + u.EscapedPath() + "?_pragma=page_size(1024)&_pragma=busy_timeout(" + strconv.FormatInt(wait.Milliseconds(), 10) +
			")&_pragma=journal_mode(WAL)&_pragma=" + strings.Join(pragmas, "&_pragma=")}
	}
	e.dialect = func(db *sql.DB) gorm.Dialector { return &sqlite.Dialector{Conn: db} }
	// temp_store: the journal of one statement, which INSERT ... RETURNING keeps, is
	// else given its 64 KiB afresh each time, by mmap and munmap (memjournal.c,
	// sqlite3JournalOpen). A pool that sorts or counts much would do so in memory, too.
	e.stepwise = file(0, "synchronous(OFF)", "temp_store(MEMORY)")
	e.URLs.Conns = sqliteConns
	if e.Admin, err = e.pool(file(time.Minute, "synchronous(NORMAL)"), adminConns); err != nil {
		return err
	}
	e.DB, err = e.pool(e.URLs.wrapped(file(e.URLs.Wait, "synchronous(NORMAL)")), sqliteConns)
	return err
}

// wrapped is the connector of the buyers' pool.
func (c Config) wrapped(inner driver.Connector) driver.Connector {
	if c.WrapDB == nil {
		return inner
	}
	return c.WrapDB(inner)
}

func (e *Engine) openMySQL(ctx context.Context, u *url.URL) error {
	c, err := mysqlConfig(u)
	if err != nil {
		return err
	}
	e.dialect = func(db *sql.DB) gorm.Dialector {
		return mysql.New(mysql.Config{Conn: db, SkipInitializeWithVersion: true})
	}
	admin, err := mysqldriver.NewConnector(c.Clone())
	if err != nil {
		return err
	}
	if e.Admin, err = e.pool(admin, adminConns); err != nil {
		return err
	}
	var setting struct{ Value string }
	err = e.Admin.WithContext(ctx).Raw("SHOW SESSION VARIABLES LIKE 'innodb_snapshot_isolation'").Scan(&setting).Error
	if err != nil {
		return fmt.Errorf("the database does not answer: %w", err)
	}
	if setting.Value != "" {
		// MariaDB's own, the default since 11.6.2: a transaction's write is refused
		// where its snapshot is stale. Off, repeatable read is what it is elsewhere.
		c.Params["innodb_snapshot_isolation"] = "OFF"
	}
	c.ReadTimeout = e.URLs.Wait + 10*time.Second // a server that hangs is an error in the end
	c.WriteTimeout = 10 * time.Second
	// The buyer gives up first; this frees the server's side of the wait.
	c.Params["innodb_lock_wait_timeout"] = strconv.Itoa(int(e.URLs.Wait/time.Second) + 1)
	buyers, err := mysqldriver.NewConnector(c)
	if err != nil {
		return err
	}
	e.stepwise = buyers
	e.DB, err = e.pool(e.URLs.wrapped(buyers), e.URLs.Conns)
	return err
}

// mysqlConfig reads the URL. The settings that the strategies rest on are made here,
// whatever the URL says.
func mysqlConfig(u *url.URL) (*mysqldriver.Config, error) {
	addr, name := u.Host, strings.TrimPrefix(u.Path, "/")
	if u.Port() == "" {
		addr += ":3306"
	}
	if u.Hostname() == "" {
		return nil, fmt.Errorf("the URL names no host; %w", errURL)
	}
	if name == "" {
		return nil, fmt.Errorf("the URL names no database; %w", errURL)
	}
	// With the address, since tls=true checks the certificate against it.
	c, err := mysqldriver.ParseDSN("tcp(" + addr + ")/?" + u.RawQuery)
	if err != nil {
		return nil, err
	}
	c.DBName = name
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	c.ParseTime, c.Loc = true, time.UTC
	c.ClientFoundRows = true   // RowsAffected counts rows found: a lost update may write the number that is there
	c.InterpolateParams = true // one round trip a statement, not three
	c.Timeout = 3 * time.Second
	c.Logger = &mysqldriver.NopLogger{} // what it would log it returns too
	if c.Params == nil {
		c.Params = map[string]string{}
	}
	c.Params["time_zone"] = "'+00:00'"
	return c, nil
}

// OpenWrapped opens one more pool for buyers, whose connections are made through
// wrap. It is closed with the engine.
//
// On SQLite its connections do not wait for a lock: they get SQLITE_BUSY, and
// wrap decides when to try again. Nor do they wait for the disk.
func (e *Engine) OpenWrapped(wrap func(driver.Connector) driver.Connector, conns int) (*gorm.DB, error) {
	return e.pool(wrap(e.stepwise), conns)
}

// pool opens a pool that is closed with the engine.
func (e *Engine) pool(c driver.Connector, conns int) (*gorm.DB, error) {
	pool := sql.OpenDB(c)
	e.onClose(pool.Close)
	pool.SetMaxOpenConns(conns)
	pool.SetMaxIdleConns(conns) // a closed connection costs the next buyer a handshake
	db, err := gorm.Open(e.dialect(pool), &gorm.Config{
		SkipDefaultTransaction: true,           // a strategy opens its own, or means not to
		Logger:                 logger.Discard, // every error is returned
		DisableAutomaticPing:   true,           // ping is the first to ask
	})
	if err != nil {
		return nil, fmt.Errorf("the database does not answer: %w", err)
	}
	return db, nil
}

// sqliteConnector makes connections to one file.
type sqliteConnector struct{ dsn string }

func (c sqliteConnector) Connect(context.Context) (driver.Conn, error) { return c.Driver().Open(c.dsn) }

func (c sqliteConnector) Driver() driver.Driver { return &sqlitedriver.Driver{} }
