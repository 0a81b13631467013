package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/product/stock"
)

func postgresDatabase() database {
	return database{
		name: dialect.Postgres, schemes: []string{"postgres", "postgresql"}, example: "postgres://user:password@host:5432/database",
		goose: goose.DialectPostgres, open: openPostgres, alone: migrateUnderAdvisoryLock,
	}
}

// postgresOldest is the oldest supported server_version_num.
const postgresOldest = 120000

func openPostgres(ctx context.Context, e *Engine, u *url.URL) error {
	c, err := postgresConfig(u)
	if err != nil {
		return err
	}
	e.dialect = func(db *sql.DB) gorm.Dialector { return postgres.New(postgres.Config{Conn: db}) }
	through, err := pooled(ctx, c)
	if err != nil {
		return whyNot(ctx, err, withPort(u, "5432"))
	}
	buyers := bounded(c, e.URLs.Wait)
	if through {
		c.DefaultQueryExecMode = pgx.QueryExecModeExec
		buyers = c
		e.Warnings = append(e.Warnings, poolerWarning)
	}
	if e.Admin, err = e.pool(newPostgresConnector(c, 0), adminConns); err != nil {
		return err
	}
	if err := askPostgres(ctx, e); err != nil {
		return err
	}
	e.stepwise = newPostgresConnector(c, 0)
	e.DB, err = e.pool(e.URLs.wrapped(newPostgresConnector(buyers, e.URLs.Wait+15*time.Second)), e.URLs.Conns)
	return err
}

// bounded returns c with time-outs in the server, all longer than a buyer's wait. They end the sessions of
// processes that lost their connection, or that hang in a transaction. They are long enough for a process that
// is stopped for a while.
func bounded(c *pgx.ConnConfig, wait time.Duration) *pgx.ConnConfig {
	c = c.Copy()
	c.RuntimeParams["client_min_messages"] = "warning" // at this level, the server also sends the code that `warned` explains
	for name, limit := range map[string]time.Duration{
		"lock_timeout":                        wait + time.Second,
		"statement_timeout":                   wait + 10*time.Second,
		"idle_in_transaction_session_timeout": wait + time.Minute,
	} {
		c.RuntimeParams[name] = strconv.FormatInt(limit.Milliseconds(), 10)
	}
	return c
}

// postgresConfig parses the URL. The driver turns parameters that it does not know into settings of the session.
func postgresConfig(u *url.URL) (*pgx.ConnConfig, error) {
	if u.Hostname() == "" {
		return nil, fmt.Errorf("the URL names no host; %w", errURL())
	}
	if strings.Trim(u.Path, "/") == "" {
		return nil, fmt.Errorf("the URL names no database; %w", errURL())
	}
	c, err := pgx.ParseConfig(u.String())
	if err != nil {
		text := err.Error() // contains the URL; the parser hides the password only if it recognizes it
		if i := strings.LastIndex(text, "`: "); i >= 0 {
			return nil, errors.New(text[i+len("`: "):])
		}
		return nil, errURL()
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = connectTimeout // a buyer's wait ends earlier
	}
	c.RuntimeParams = maps.Clone(c.RuntimeParams)
	c.RuntimeParams["timezone"] = "UTC"
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "shop"
	}
	return c, nil
}

// askPostgres asks for the server's version, and checks that the shop can use the server.
func askPostgres(ctx context.Context, e *Engine) error {
	var server struct {
		Number   int
		Version  string
		ReadOnly string
		Commits  string
		Level    string
	}
	err := e.Admin.WithContext(ctx).Raw(`SELECT current_setting('server_version_num')::int AS number, version() AS version,
		current_setting('transaction_read_only') AS read_only, current_setting('synchronous_commit') AS commits,
		current_setting('default_transaction_isolation') AS level`).Scan(&server).Error
	if err != nil {
		return postgresRefused(err)
	}
	if server.Number < postgresOldest {
		return fmt.Errorf("the server is %s; PostgreSQL 12 or later is needed", firstWords(server.Version, 2))
	}
	if server.ReadOnly == "on" {
		return errReadOnly
	}
	if server.Commits == "off" || server.Commits == "local" {
		e.Warnings = append(e.Warnings, "--db: synchronous_commit is "+server.Commits+": a server that is lost takes sales with it that buyers were told of")
	}
	e.Database, e.Server = dialect.PostgresAt(server.Level), firstWords(server.Version, 2)
	if e.Database != dialect.Postgres {
		e.Server += ", " + strings.ToUpper(server.Level)
	}
	if strings.HasPrefix(server.Version, "CockroachDB") {
		e.Server = firstWords(server.Version, 3)
		e.Lacks = map[string]string{dialect.NamedLocks: "CockroachDB takes pg_advisory_xact_lock and locks nothing; use PostgreSQL, or another strategy"}
	}
	return nil
}

func whyNot(ctx context.Context, err error, address string) error {
	var said *pgconn.PgError
	if !errors.As(err, &said) && isMySQL(ctx, address) {
		return fmt.Errorf("a MySQL or MariaDB server answers there; use %s", mysqlDatabase().example)
	}
	return postgresRefused(err)
}

func withPort(u *url.URL, port string) string {
	if u.Port() != "" {
		port = u.Port()
	}
	return net.JoinHostPort(u.Hostname(), port)
}

func firstWords(text string, n int) string {
	words := strings.Fields(text)
	return strings.TrimRight(strings.Join(words[:min(n, len(words))], " "), ",")
}

// A refusal formats an error of the server in one line.
type refusal struct{ *pgconn.PgError }

func (r refusal) Error() string {
	text := "the database refuses: " + r.Message + " (SQLSTATE " + r.Code + ")"
	if strings.HasPrefix(r.Message, "unsupported startup parameter") {
		text += "; a pooler stands in between and takes no such setting: leave it out of the URL, and set it for the role"
	}
	return text
}

func (r refusal) Unwrap() error { return r.PgError }

// postgresRefused says in one line why a server could not be opened. The driver's own error lists each attempt
// with TLS and without.
func postgresRefused(err error) error {
	var said *pgconn.PgError
	if errors.As(err, &said) {
		return refusal{said}
	}
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	reason := strings.TrimSpace(lines[len(lines)-1])
	if strings.Contains(reason, "refused TLS") {
		return errors.New("the server does not support TLS, but sslmode in the URL requires it; set sslmode to prefer, or turn on ssl at the server")
	}
	return fmt.Errorf("the database does not answer; check that it runs and that its URL is right: %s", reason)
}

// migrateUnderAdvisoryLock calls `migrate` under a lock, since one of two simultaneous migrations would fail.
// A transaction holds the lock: even a connection pooler keeps a transaction on one connection. The lock
// applies to one database.
func migrateUnderAdvisoryLock(ctx context.Context, db *sql.DB, migrate func() error) error {
	waiting, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return postgresRefused(err)
	}
	defer tx.Rollback() //nolint:errcheck // nothing was written
	_, err = tx.ExecContext(waiting, "SELECT set_config('lock_timeout', '0', true), pg_advisory_xact_lock($1)", migrateKey)
	switch {
	case err != nil && waiting.Err() != nil && ctx.Err() == nil:
		return fmt.Errorf("another process has been migrating this database for 60 s: %w", err)
	case err != nil:
		return postgresRefused(err)
	}
	err = migrate()
	var said *pgconn.PgError
	if errors.As(err, &said) {
		return fmt.Errorf("migrate: %w%s", refusal{said}, migrateHint(said))
	}
	return err
}

func migrateHint(said *pgconn.PgError) string {
	switch {
	case said.Code != "42501": // insufficient_privilege
		return ""
	case strings.Contains(said.Message, "for table"): // the schema exists already
		return "; grant this user SELECT on goose_db_version, and SELECT, INSERT, UPDATE and DELETE on product, " +
			strings.Join(stock.Tables(), ", ") + " and purchase_history, with USAGE on their sequences"
	}
	return "; let the database's owner run shop migrate, or grant this user CREATE on the schema"
}

// migrateKey is "shop" in ASCII.
const migrateKey = 0x73686f70
