package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/pressly/goose/v3"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine/dialect"
)

func mysqlDatabase() database {
	return database{
		name: dialect.MySQL, schemes: []string{"mysql", "mariadb"}, example: "mysql://user:password@host:3306/database",
		goose: goose.DialectMySQL, severalHosts: true, open: openMySQL, alone: migrateUnderLock,
	}
}

func openMySQL(ctx context.Context, e *Engine, u *url.URL) error {
	hosts := []string{u.Host}
	if strings.Contains(u.Host, ",") {
		var err error
		if hosts, err = addresses(u.Host, "3306"); err != nil {
			return err
		}
	}
	var configs []*mysqldriver.Config
	for _, host := range hosts {
		c, err := mysqlConfig(at(u, host))
		if err != nil {
			return err
		}
		c.DialFunc = e.URLs.Detours.dialer()
		configs = append(configs, c)
	}
	e.dialect = func(db *sql.DB) gorm.Dialector {
		return mysql.New(mysql.Config{Conn: db, SkipInitializeWithVersion: true})
	}
	// All processes use the first node here, so that one of two simultaneous migrations waits.
	admin, err := newMySQLConnector(configs, 0, false)
	if err != nil {
		return err
	}
	if e.Admin, err = e.pool(admin, adminConns); err != nil {
		return err
	}
	setting, err := askMySQL(ctx, e, configs[0].Addr)
	if err != nil {
		return err
	}
	certifies, err := askGalera(ctx, e)
	if err == nil {
		err = askReads(ctx, e)
	}
	if err != nil {
		return err
	}
	if certifies {
		if err := causalAdmin(e, configs); err != nil {
			return err
		}
	}
	if certifies && len(configs) > 1 {
		e.Cluster = &Cluster{configs: slices.Clone(configs), open: e.pool}
	}
	if len(configs) > 1 {
		e.Warnings = append(e.Warnings, deadNodes(ctx, configs)...)
	}
	first := e.URLs.Process
	buyers, err := newMySQLConnector(forBuyers(configs, e.URLs.Wait, setting != ""), first, certifies)
	if err != nil {
		return err
	}
	e.stepwise = buyers
	if e.DB, err = e.pool(e.URLs.wrapped(buyers), e.URLs.Conns); err != nil || !certifies {
		return err
	}
	looking := newNodes(forBuyers(configs, e.URLs.Wait, setting != ""), first)
	looking.session = causally
	e.Causal, err = e.pool(looking, e.URLs.Conns)
	return err
}

func forBuyers(configs []*mysqldriver.Config, wait time.Duration, snapshots bool) []*mysqldriver.Config {
	var all []*mysqldriver.Config
	for _, c := range configs {
		c = c.Clone()
		if snapshots {
			// MariaDB refuses a write whose snapshot is stale (default since 11.6.2). With OFF, REPEATABLE READ
			// behaves as in MySQL.
			c.Params["innodb_snapshot_isolation"] = "OFF"
		}
		c.ReadTimeout = wait + 10*time.Second // a hanging server becomes an error
		c.WriteTimeout = 10 * time.Second
		// The buyer gives up first. This time-out then also ends the wait in the server.
		c.Params["innodb_lock_wait_timeout"] = strconv.Itoa(int(wait/time.Second) + 1)
		all = append(all, c)
	}
	return all
}

// newMySQLConnector returns a connector for one server or several. With several, it tries them in order,
// beginning with the index `first`, and uses the first server that accepts statements.
func newMySQLConnector(configs []*mysqldriver.Config, first int, certifies bool) (driver.Connector, error) {
	if len(configs) == 1 && !certifies {
		return mysqldriver.NewConnector(configs[0])
	}
	return newNodes(configs, first), nil
}

// deadNodes returns a warning for each node that accepts no statements.
func deadNodes(ctx context.Context, configs []*mysqldriver.Config) (warnings []string) {
	all := newNodes(configs, 0)
	for i, c := range configs {
		conn, err := all.connect(ctx, i)
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("--db: %s takes no statements, the shop goes on with the other nodes: %v", c.Addr, err))
			continue
		}
		_ = conn.Close() // the connection was only a check
	}
	if len(warnings) == len(configs) {
		return nil // the buyers' connections will report this error
	}
	return warnings
}

func at(u *url.URL, host string) *url.URL {
	one := *u
	one.Host = host
	return &one
}

// askMySQL asks for the server's product and version. It returns innodb_snapshot_isolation, or "" if
// the server does not have it.
func askMySQL(ctx context.Context, e *Engine, address string) (snapshots string, _ error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer time.AfterFunc(greetingTimeout, func() { // otherwise this client and a PostgreSQL server would wait for each other
		if isPostgres(ctx, address) {
			cancel(fmt.Errorf("a PostgreSQL server answers there; use %s", postgresDatabase().example))
		}
	}).Stop()
	var setting struct{ Value string }
	var version string
	err := e.Admin.WithContext(ctx).Raw("SHOW SESSION VARIABLES LIKE 'innodb_snapshot_isolation'").Scan(&setting).Error
	if err == nil {
		err = e.Admin.WithContext(ctx).Raw("SELECT VERSION()").Scan(&version).Error
	}
	switch cause := context.Cause(ctx); {
	case err == nil:
		e.Database, e.Server = dialect.MySQL, "MySQL "+version
		if strings.Contains(version, "MariaDB") {
			e.Server = "MariaDB " + version
		}
		return setting.Value, nil
	case cause != nil && ctx.Err() == context.Canceled && !errors.Is(cause, context.Canceled):
		return "", cause
	}
	return "", fmt.Errorf("the database does not answer; check that it runs and that its URL is right: %w", err)
}

// mysqlConfig parses the URL. Settings that the strategies rely on override those in the URL.
func mysqlConfig(u *url.URL) (*mysqldriver.Config, error) {
	addr, name := withPort(u, "3306"), strings.TrimPrefix(u.Path, "/")
	if u.Hostname() == "" {
		return nil, fmt.Errorf("the URL names no host; %w", errURL())
	}
	if name == "" {
		return nil, fmt.Errorf("the URL names no database; %w", errURL())
	}
	// The address is in the DSN, since tls=true checks the certificate against it.
	c, err := mysqldriver.ParseDSN("tcp(" + addr + ")/?" + u.RawQuery)
	if err != nil {
		return nil, err
	}
	c.DBName = name
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	c.ParseTime, c.Loc = true, time.UTC
	c.ClientFoundRows = true   // RowsAffected counts matching rows, even if an UPDATE writes the value that a row already has
	c.InterpolateParams = true // one round trip per statement instead of three
	c.Timeout = 3 * time.Second
	c.Logger = &mysqldriver.NopLogger{} // the driver also returns its errors
	if c.Params == nil {
		c.Params = map[string]string{}
	}
	c.Params["time_zone"] = "'+00:00'"
	return c, nil
}

// migrateUnderLock runs migrate under a lock. MySQL commits each CREATE TABLE separately, so two
// simultaneous migrations would disturb each other.
func migrateUnderLock(ctx context.Context, db *sql.DB, migrate func() error) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("the database does not answer; check that it runs and that its URL is right: %w", err)
	}
	defer conn.Close()
	// The lock applies to the whole server, so its name contains the database.
	var got sql.NullInt64
	if err := conn.QueryRowContext(ctx, "SELECT GET_LOCK("+migrateLock+", 60)").Scan(&got); err != nil {
		return fmt.Errorf("lock for migrating: %w", err)
	}
	if got.Int64 != 1 {
		return errors.New("another process has been migrating this database for 60 s")
	}
	defer conn.ExecContext(context.WithoutCancel(ctx), "DO RELEASE_LOCK("+migrateLock+")")
	return migrate()
}

// migrateLock is an expression for the name of the lock: at most 64 characters, and equal for all
// processes of one database.
const migrateLock = "CONCAT('shop migrate ', MD5(DATABASE()))"
