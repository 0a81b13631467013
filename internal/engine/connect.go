package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/glebarez/sqlite"
	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// connect opens the connections to e.URLs.
func (e *Engine) connect() error {
	if err := e.openDB(); err != nil {
		return err
	}
	if e.URLs.Redis != "" {
		client, err := openRedis(e.URLs.Redis, false)
		if err != nil {
			return fmt.Errorf("--redis: %w", err)
		}
		e.Redis = client
		e.onClose(client.Close)
	}
	seen := map[string]bool{}
	for _, node := range e.URLs.Redlock {
		client, err := openRedis(node, true)
		if err != nil {
			return fmt.Errorf("--redlock: %w", err)
		}
		addr := client.Options().Addr
		if seen[addr] {
			return errors.Join(fmt.Errorf("--redlock: %s is there twice; a node counts once for a majority", addr), client.Close())
		}
		seen[addr] = true
		e.Redlock = append(e.Redlock, client)
		e.onClose(client.Close)
	}
	return e.connectCoordination()
}

func (e *Engine) openDB() error {
	dialector, err := e.dialector()
	if err != nil {
		return fmt.Errorf("--db: %w", err)
	}
	e.DB, err = gorm.Open(dialector, &gorm.Config{
		SkipDefaultTransaction: true,           // a strategy opens its own, or means not to
		Logger:                 logger.Discard, // every error is returned
		DisableAutomaticPing:   true,           // ping is the first to ask
	})
	if err != nil {
		return fmt.Errorf("--db: the database does not answer: %w", err)
	}
	db, err := e.DB.DB()
	if err != nil {
		return err
	}
	e.onClose(db.Close)
	db.SetMaxOpenConns(e.URLs.Conns)
	db.SetMaxIdleConns(e.URLs.Conns) // a closed connection costs the next buyer a handshake
	return nil
}

// dialector reads the URL. What the strategies rest on is set here, whatever
// the URL says.
func (e *Engine) dialector() (gorm.Dialector, error) {
	u, err := url.Parse(e.URLs.DB)
	if err != nil {
		return nil, errors.New("not a URL; give mysql://user:password@host:3306/database or sqlite:///path/to/file")
	}
	switch u.Scheme {
	case "sqlite":
		// WAL lets readers read beside a writer; a second writer waits up to
		// busy_timeout in SQLite's own back-off.
		e.URLs.Conns = sqliteConns
		wait := strconv.FormatInt(e.URLs.Wait.Milliseconds(), 10)
		return sqlite.Open("file:" + u.Path + "?_pragma=busy_timeout(" + wait + ")&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)"), nil
	case "mysql", "mariadb":
	default:
		return nil, fmt.Errorf("scheme %q is not known; give mysql://user:password@host:3306/database or sqlite:///path/to/file", u.Scheme)
	}
	c, err := mysqldriver.ParseDSN("/?" + u.RawQuery)
	if err != nil {
		return nil, err
	}
	c.Net, c.Addr, c.DBName = "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	if u.Port() == "" {
		c.Addr += ":3306"
	}
	if c.DBName == "" {
		return nil, errors.New("the URL names no database; give mysql://user:password@host:3306/database")
	}
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	c.ParseTime, c.Loc = true, time.UTC
	c.ClientFoundRows = true   // RowsAffected counts rows found: a lost update may write the number that is there
	c.InterpolateParams = true // one round trip a statement, not three
	c.Timeout = 3 * time.Second
	c.ReadTimeout = e.URLs.Wait + 10*time.Second // a server that hangs is an error in the end
	c.WriteTimeout = 10 * time.Second
	c.Logger = &mysqldriver.NopLogger{} // what it would log it returns too
	if c.Params == nil {
		c.Params = map[string]string{}
	}
	c.Params["time_zone"] = "'+00:00'"
	// The buyer gives up first; this frees the server's side of the wait.
	c.Params["innodb_lock_wait_timeout"] = strconv.Itoa(int(e.URLs.Wait/time.Second) + 1)
	connector, err := mysqldriver.NewConnector(c)
	if err != nil {
		return nil, err
	}
	return mysql.New(mysql.Config{Conn: sql.OpenDB(connector), SkipInitializeWithVersion: true}), nil
}

// openRedis makes a client that tries each command once.
//
// Of a lock's single Redis, a command is not interrupted when a buyer hangs
// up (contextTimeout false): the key might be set and the answer lost, and
// the product locked for the rest of the TTL. A Redlock node's is, since one
// silent node must not hold up the majority; the lock then deletes its key on
// every node.
func openRedis(address string, contextTimeout bool) (*redis.Client, error) {
	o, err := redis.ParseURL(address)
	if err != nil {
		return nil, fmt.Errorf("%w; give redis://[:password@]host:6379", err)
	}
	o.MaxRetries = -1 // a lock's script must not run twice unseen
	o.ContextTimeoutEnabled = contextTimeout
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = 2*time.Second, 5*time.Second, 5*time.Second
	o.DialerRetries = 1
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(o), nil
}

// ping asks every server once, so that a wrong address shows at the start and
// not at the first buyer.
func (e *Engine) ping(ctx context.Context) error {
	for server, err := range e.Check(ctx) {
		return fmt.Errorf("the %s does not answer: %w", server, err)
	}
	return nil
}
