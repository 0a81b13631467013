package app

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/explore/serverstate"
	"github.com/oversell/oversell/internal/load/pulse"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// protocols lists the servers' protocols in the order for people.
var protocols = []string{"mysql", "postgres", "redis"}

// queryTimeout limits the explorer's own queries, since a program may have left a lock.
const queryTimeout = 10 * time.Second

// Servers are the user's servers. The explorer has its own connection to each, which bypasses the gate.
// Only one goroutine may use them.
type Servers struct {
	app       *App
	databases map[string]*sql.DB // connections by protocol
	watchers  map[string]*sql.DB // connections for the watch query, by protocol
	addresses map[string]string
	redis     *redis.Client
	versions  []string
	private   *localserver.Group
	mysql     *localserver.MySQL    // nil unless private
	postgres  *localserver.Postgres // nil unless private
	listener  *Listener             // nil without PostgreSQL

	found map[string]bool // statements of earlier resets that have found a row
	unmet string          // an UPDATE of the last reset that found no row, although it found one before; "": none
}

// Open connects to the servers, or starts private ones. The caller must call Close. The error is one
// line.
func Open(ctx context.Context, a *App) (_ *Servers, err error) {
	s := &Servers{app: a, databases: map[string]*sql.DB{}, watchers: map[string]*sql.DB{}, addresses: map[string]string{}, found: map[string]bool{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	urls := map[string]string{}
	for _, name := range protocols {
		if server := a.server(name); server != nil {
			urls[name], s.addresses[name] = server.admin(name), server.Address
		}
	}
	if a.Local {
		if urls, err = s.startPrivate(); err != nil {
			return nil, err
		}
	}
	open := map[string]func(context.Context, string) error{"mysql": s.openMySQL, "postgres": s.openPostgres, "redis": s.openRedis}
	for _, name := range protocols {
		if urls[name] == "" {
			continue
		}
		err := within(ctx, func(ctx context.Context) error { return open[name](ctx, urls[name]) })
		if errors.Is(err, errPooler) {
			return nil, fmt.Errorf("%s at %s: %w", name, s.addresses[name], err)
		}
		if err != nil {
			return nil, fmt.Errorf("%s at %s: %w; does such a server run there, and are user, password and database right? `local: true` starts a private server", name, s.addresses[name], err)
		}
	}
	if err := checkProcess(ctx, s.SQL("mysql"), s.addresses["mysql"]); err != nil {
		return nil, err
	}
	switch {
	case a.Local:
		err = s.prepare(ctx, urls)
	case s.redis != nil && a.allowed != s.addresses["redis"]:
		err = guardRedis(ctx, s.redis, s.addresses["redis"])
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Server) admin(protocol string) string {
	switch {
	case s.URL != "":
		return s.URL
	case protocol == "mysql":
		return "mysql://root@" + s.Address + "/shop"
	case protocol == "postgres":
		return "postgres://postgres@" + s.Address + "/shop?sslmode=disable"
	}
	return "redis://" + s.Address
}

func (s *Servers) openMySQL(ctx context.Context, text string) error {
	u, err := url.Parse(text)
	if err != nil {
		return errors.New("the value is not a URL")
	}
	c := mysql.NewConfig()
	c.Net, c.Addr, c.User, c.DBName = "tcp", u.Host, u.User.Username(), strings.TrimPrefix(u.Path, "/")
	c.Passwd, _ = u.User.Password()
	c.Logger = &mysql.NopLogger{}
	c.ClientFoundRows = true // count the rows that an UPDATE finds, even if it does not change them
	if err := unpooledMySQL(ctx, c); err != nil {
		return err
	}
	connect := func(seconds string) (*sql.DB, error) {
		c := c.Clone()
		c.Params = map[string]string{"innodb_lock_wait_timeout": seconds, "lock_wait_timeout": seconds}
		connector, err := mysql.NewConnector(c)
		if err != nil {
			return nil, err
		}
		return sql.OpenDB(connector), nil
	}
	db, err := connect("5")
	if err != nil {
		return err
	}
	if s.watchers["mysql"], err = connect("1"); err != nil { // the shortest lock wait of MySQL, in seconds
		return err
	}
	return s.keep(ctx, "mysql", db, "SELECT VERSION()", mysqlVersion)
}

func mysqlVersion(version string) string {
	if number, _, found := strings.Cut(version, "-MariaDB"); found {
		return "MariaDB " + number
	}
	return "MySQL " + version
}

func (s *Servers) openPostgres(ctx context.Context, text string) error {
	if u, err := url.Parse(text); err == nil && !u.Query().Has("sslmode") {
		q := u.Query()
		q.Set("sslmode", "disable")
		u.RawQuery = q.Encode()
		text = u.String()
	}
	c, err := pgx.ParseConfig(text)
	if err != nil {
		return errors.New("the value is not a URL")
	}
	if err := unpooledPostgres(ctx, c); err != nil {
		return err
	}
	s.listener = newListener(c)
	c.RuntimeParams["lock_timeout"] = "100ms"
	s.watchers["postgres"] = stdlib.OpenDB(*c)
	return s.keep(ctx, "postgres", s.listener.db, "SHOW server_version", func(version string) string {
		number, _, _ := strings.Cut(version, " ")
		return "PostgreSQL " + number
	})
}

func (s *Servers) keep(ctx context.Context, protocol string, db *sql.DB, question string, name func(string) string) error {
	s.databases[protocol] = db
	db.SetMaxOpenConns(1)
	s.watchers[protocol].SetMaxOpenConns(1)
	var version string
	if err := db.QueryRowContext(ctx, question).Scan(&version); err != nil {
		return err
	}
	s.versions = append(s.versions, name(version))
	return nil
}

func (s *Servers) openRedis(ctx context.Context, text string) error {
	options, err := redis.ParseURL(text)
	if err != nil {
		return errors.New("the value is not a URL")
	}
	options.MaxRetries, options.PoolSize, options.DisableIdentity, options.Protocol = -1, 1, true, 2
	s.redis = redis.NewClient(options)
	info, err := s.redis.Info(ctx, "server").Result()
	if err != nil {
		return err
	}
	if m := redisVersion.FindStringSubmatch(info); m != nil {
		s.versions = append(s.versions, "Redis "+m[1])
	}
	return nil
}

var redisVersion = regexp.MustCompile(`redis_version:(\S+)`)

var errSilent = fmt.Errorf("no answer within %s", queryTimeout)

func within(ctx context.Context, call func(context.Context) error) error {
	bounded, cancel := pulse.WithTimeout(ctx, queryTimeout)
	defer cancel()
	err := call(bounded)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return errSilent
	}
	return err
}

// ask limits a statement to queryTimeout, and explains a time-out.
func ask(ctx context.Context, call func(context.Context) error) error {
	err := within(ctx, call)
	if errors.Is(err, errSilent) {
		return fmt.Errorf("%w: a lock may be held by something that is not explored", err)
	}
	return err
}

// Addresses returns the servers' real addresses, by protocol.
func (s *Servers) Addresses() map[string]string { return s.addresses }

// SQL returns the connection to the database of a protocol; nil if there is none.
func (s *Servers) SQL(protocol string) *sql.DB { return s.databases[protocol] }

// Listener returns the listener of the connection to PostgreSQL; nil if there is none.
func (s *Servers) Listener() *Listener { return s.listener }

// Redis returns the keys of the whole Redis server.
func (s *Servers) Redis() serverstate.Keyspace { return serverstate.NewKeyspace(s.redis) }

// Rows returns the first rows of a query to a database as text. The parameter `most` is the maximum number of rows.
func (s *Servers) Rows(ctx context.Context, protocol, query string, most int) (columns []string, all [][]string, _ error) {
	return rows(ctx, s.databases[protocol], query, most)
}

// Keys returns each key of Redis and its value. It fails if Redis has more keys than the parameter `most`.
func (s *Servers) Keys(ctx context.Context, most int) ([][]string, error) {
	return s.Redis().Values(ctx, most)
}

// Versions describes the servers for people: "MariaDB 10.11.14, Redis 7.0.15".
func (s *Servers) Versions() string { return strings.Join(s.versions, ", ") }

func (s *Servers) finds(statement string, done sql.Result) {
	if n, err := done.RowsAffected(); err != nil || !strings.HasPrefix(strings.ToUpper(strings.TrimSpace(statement)), "UPDATE") {
		return
	} else if n > 0 {
		s.found[statement] = true
	} else if s.found[statement] {
		s.unmet = statement
	}
}

// Unmet returns a warning in one line if an UPDATE of the last reset found no row, although it found
// one before; "" otherwise. Probably the program has deleted the row.
func (s *Servers) Unmet() string {
	if s.unmet == "" {
		return ""
	}
	return "; `" + s.unmet + "` of `reset` found no row, although it did before: if the program deletes the row, use DELETE and INSERT in `reset`"
}

// Reset restores the state in which each run begins.
func (s *Servers) Reset(ctx context.Context) error {
	s.unmet = ""
	for protocol, statements := range map[string][]string{"mysql": s.app.Reset.MySQL, "postgres": s.app.Reset.Postgres} {
		for _, statement := range statements {
			err := ask(ctx, func(ctx context.Context) error {
				done, err := s.databases[protocol].ExecContext(ctx, statement)
				if err == nil {
					s.finds(statement, done)
				}
				return err
			})
			if err != nil {
				return fmt.Errorf("reset fails: %s: %w", statement, err)
			}
		}
	}
	if err := s.purged(ctx); err != nil {
		return err
	}
	if s.app.Reset.Flush {
		if err := s.redis.FlushDB(ctx).Err(); err != nil {
			return fmt.Errorf("reset fails: flushdb: %w", err)
		}
	}
	for _, words := range s.app.Reset.Redis {
		var args []any
		for _, word := range words {
			args = append(args, word)
		}
		if err := s.redis.Do(ctx, args...).Err(); err != nil && !errors.Is(err, redis.Nil) {
			return fmt.Errorf("reset fails: %s: %w", strings.Join(words, " "), err)
		}
	}
	return nil
}

// The maximum waits for InnoDB's purge. They differ for a private server and a server with other users,
// whose changes may keep the purge from ever being complete.
const (
	privatePurge = 5 * time.Second
	sharedPurge  = 500 * time.Millisecond
)

var history = regexp.MustCompile(`History list length (\d+)`)

// purged waits until InnoDB has purged the rows that reset has deleted. Before the purge, a deleted row is
// still in the indexes. So an INSERT may wait for a gap lock that it would not meet afterwards (MySQL
// manual, "Purge Configuration").
func (s *Servers) purged(ctx context.Context) error {
	deletes := func(statement string) bool { return deletion.MatchString(statement) }
	if !slices.ContainsFunc(s.app.Reset.MySQL, deletes) {
		return nil
	}
	patience := sharedPurge
	if s.private != nil {
		patience = privatePurge
	}
	limit, cancel := pulse.WithTimeout(ctx, patience)
	defer cancel()
	for ; limit.Err() == nil; time.Sleep(time.Millisecond) {
		var kind, name, status string
		if err := s.databases["mysql"].QueryRowContext(ctx, "SHOW ENGINE INNODB STATUS").Scan(&kind, &name, &status); err != nil {
			return context.Cause(ctx) // without the privilege PROCESS, the status is not available
		}
		if m := history.FindStringSubmatch(status); m == nil || m[1] == "0" {
			return nil
		}
	}
	return nil
}

var deletion = regexp.MustCompile(`(?i)^\s*(?:DELETE|REPLACE)\b`)

func rows(ctx context.Context, db *sql.DB, query string, most int) (columns []string, all [][]string, _ error) {
	err := ask(ctx, func(ctx context.Context) error {
		rows, err := db.QueryContext(ctx, query)
		if err != nil {
			return err
		}
		defer rows.Close()
		if columns, err = rows.Columns(); err != nil {
			return err
		}
		if len(columns) == 0 {
			return errors.New("it is no query: it returns no columns")
		}
		for rows.Next() && len(all) < most {
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(any)
			}
			if err := rows.Scan(values...); err != nil {
				return err
			}
			all = append(all, texts(values))
		}
		return rows.Err()
	})
	return columns, all, err
}

func texts(values []any) (all []string) {
	for _, v := range values {
		switch v := (*v.(*any)).(type) {
		case nil:
			all = append(all, "NULL")
		case []byte:
			all = append(all, string(v))
		default:
			all = append(all, fmt.Sprint(v))
		}
	}
	return all
}

// Locked reports whether a query of the explorer failed because of a lock.
func Locked(err error) bool {
	var my *mysql.MySQLError
	var pg *pgconn.PgError
	return errors.Is(err, errSilent) || errors.As(err, &my) && my.Number == lockWaitTimeout || errors.As(err, &pg) && pg.Code == lockNotAvailable
}

// The servers' errors for a lock that was not granted in time.
const (
	lockWaitTimeout  = 1205    // ER_LOCK_WAIT_TIMEOUT of MySQL
	lockNotAvailable = "55P03" // lock_not_available of PostgreSQL
)

// Watch returns the first row of the user's watch query, or nothing without such a query. If the program
// holds a lock that the query needs, Watch does not wait but fails, and Locked reports true for the error.
func (s *Servers) Watch(ctx context.Context) (columns, values []string, _ error) {
	if s.app.Watch == "" {
		return nil, nil, nil
	}
	protocol, query, err := s.app.addressed(s.app.Watch)
	if err != nil {
		return nil, nil, err
	}
	columns, rows, err := rows(ctx, s.watchers[protocol], query, 1)
	if err != nil {
		return nil, nil, fmt.Errorf("watch: %s: %w", s.app.Watch, err)
	}
	if len(rows) > 0 {
		values = rows[0]
	}
	return columns, values, nil
}

// Close closes the connections and removes private servers.
func (s *Servers) Close() (err error) {
	for _, databases := range []map[string]*sql.DB{s.databases, s.watchers} {
		for _, db := range databases {
			err = errors.Join(err, db.Close())
		}
	}
	if s.redis != nil {
		err = errors.Join(err, s.redis.Close())
	}
	if s.private != nil {
		err = errors.Join(err, s.private.Close())
	}
	return err
}
