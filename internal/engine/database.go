package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/pressly/goose/v3"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// A database describes one kind of database to this package. Each kind has a file and a line in databases().
type database struct {
	name    string        // name of its dialect
	schemes []string      // schemes of its URLs
	example string        // example URL for messages
	goose   goose.Dialect // dialect of goose, which migrates the schema

	severalHosts bool // the URL may name several hosts, the nodes of a cluster

	// open opens e.DB and e.Admin, and records in e.Lacks what the server cannot do.
	open func(ctx context.Context, e *Engine, u *url.URL) error

	// alone calls `migrate` while no other process migrates the database.
	alone func(ctx context.Context, db *sql.DB, migrate func() error) error
}

// databases returns the kinds of database that --db accepts.
func databases() []database { return []database{mysqlDatabase(), postgresDatabase(), sqliteDatabase()} }

// databaseBy returns the first database that fits a condition.
func databaseBy(is func(database) bool) (database, bool) {
	all := databases()
	if i := slices.IndexFunc(all, is); i >= 0 {
		return all[i], true
	}
	return database{}, false
}

// adminConns is the size of the Admin pool: a restock or a migration, a readiness check, and one more task.
const adminConns = 3

func errURL() error {
	var examples []string
	for _, d := range databases() {
		examples = append(examples, d.example)
	}
	return errors.New("expected " + strings.Join(examples, ", or "))
}

// openDB opens two pools on one database: DB for the buyers, and Admin for other work. That work must neither
// wait behind the buyers nor end with their time-outs.
func (e *Engine) openDB(ctx context.Context) error {
	if !strings.HasPrefix(e.URLs.DB, "sqlite:") && strayAt(e.URLs.DB) && noneBefore(e.URLs.DB) {
		return errUnencoded
	}
	u, err := parseHosts(e.URLs.DB)
	if err != nil { // the text of err contains the password
		return fmt.Errorf("the value is not a URL; %w", errURL())
	}
	d, ok := databaseBy(func(d database) bool { return slices.Contains(d.schemes, u.Scheme) })
	if !ok {
		return fmt.Errorf("unknown scheme %q; %w", u.Scheme, errURL())
	}
	if strings.Contains(u.Host, ",") && !d.severalHosts {
		return fmt.Errorf("only mysql:// takes several hosts; name one (got %s)", u.Host)
	}
	return d.open(ctx, e, u)
}

func (c Config) wrapped(inner driver.Connector) driver.Connector {
	if c.WrapDB == nil {
		return inner
	}
	return c.WrapDB(inner)
}

// OpenWrapped opens one more pool for buyers. The function `wrap` wraps its connections. The caller closes the
// pool.
//
// On SQLite its connections do not wait for a lock. They get SQLITE_BUSY, and the wrapper decides when to
// retry. They do not wait for the disk either.
func (e *Engine) OpenWrapped(wrap func(driver.Connector) driver.Connector, conns int) (*gorm.DB, error) {
	return e.open(sql.OpenDB(wrap(e.stepwise)), conns)
}

// pool opens a pool. The engine closes it.
func (e *Engine) pool(c driver.Connector, conns int) (*gorm.DB, error) {
	pool := sql.OpenDB(c)
	e.onClose(pool.Close)
	return e.open(pool, conns)
}

func (e *Engine) open(pool *sql.DB, conns int) (*gorm.DB, error) {
	pool.SetMaxOpenConns(conns)
	pool.SetMaxIdleConns(conns) // a closed connection costs the next buyer a handshake
	db, err := gorm.Open(e.dialect(pool), &gorm.Config{
		SkipDefaultTransaction: true,           // a strategy decides whether it opens a transaction
		Logger:                 logger.Discard, // every error is also returned
		DisableAutomaticPing:   true,           // ping checks the connection
	})
	if err != nil {
		return nil, fmt.Errorf("the database does not answer; check that it runs and that its URL is right: %w", err)
	}
	stand(db, pool, conns)
	return db, nil
}
