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

// A database is what this room must know of one: one file, and one line in databases.
type database struct {
	name    string        // of its dialect
	schemes []string      // of its URLs
	example string        // one of them, for messages
	goose   goose.Dialect // what keeps its schema

	severalHosts bool // its URL may name the nodes of a cluster

	// open opens e.DB and e.Admin, and notes in e what the server cannot do.
	open func(ctx context.Context, e *Engine, u *url.URL) error

	// alone runs migrate while no other process migrates the same database.
	alone func(ctx context.Context, db *sql.DB, migrate func() error) error
}

// databases are those that --db may name.
func databases() []database { return []database{mysqlDatabase(), postgresDatabase(), sqliteDatabase()} }

// databaseBy finds the one that a URL's scheme names, or a dialect.
func databaseBy(is func(database) bool) (database, bool) {
	all := databases()
	if i := slices.IndexFunc(all, is); i >= 0 {
		return all[i], true
	}
	return database{}, false
}

// adminConns: one for a restock or a migration, one for readiness checks, one to spare.
const adminConns = 3

// errURL is what the user reads when --db is not a URL that this room can open.
func errURL() error {
	var examples []string
	for _, d := range databases() {
		examples = append(examples, d.example)
	}
	return errors.New("expected " + strings.Join(examples, ", or "))
}

// openDB opens two pools on one database: DB for the buyers, and Admin for work that
// must not wait behind them or be cut off by their time-outs.
func (e *Engine) openDB(ctx context.Context) error {
	if !strings.HasPrefix(e.URLs.DB, "sqlite:") && strayAt(e.URLs.DB) && noneBefore(e.URLs.DB) {
		return errUnencoded
	}
	u, err := parseHosts(e.URLs.DB)
	if err != nil { // its text would show the password
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

// wrapped is the connector of the buyers' pool.
func (c Config) wrapped(inner driver.Connector) driver.Connector {
	if c.WrapDB == nil {
		return inner
	}
	return c.WrapDB(inner)
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
	stand(db, pool, conns)
	return db, nil
}
