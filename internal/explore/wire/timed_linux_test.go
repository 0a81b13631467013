package wire_test

import (
	"database/sql"
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	goredis "github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/explore/wire"
	"github.com/oversell/oversell/internal/explore/wire/mysql"
	"github.com/oversell/oversell/internal/explore/wire/postgres"
	"github.com/oversell/oversell/internal/explore/wire/redis"
	"github.com/oversell/oversell/internal/explore/wire/wiretest"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

// A clocked gate leaves time-outs alone, or does not.
type clocked struct {
	wire.Open
	timed bool
}

func (g clocked) Timed() bool { return g.timed }

// TestTimed: time-outs are the program's own where the gate says so, and none where it does not.
func TestTimed(t *testing.T) {
	localservertest.SkipShort(t)
	group, err := localserver.NewGroup()
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	t.Run("mysql", func(t *testing.T) {
		server, err := localserver.StartMySQL(group)
		mayMiss(t, err)
		for timed, want := range map[bool]string{true: "7", false: "3600"} {
			at := wiretest.Proxy(t, clocked{timed: timed}, mysql.Protocol(), server.Addr)
			db := opened(t, "mysql", dsn(t, server.URL(), at))
			execute(t, db, "SET SESSION innodb_lock_wait_timeout = 7")
			if got := one(t, db, "SELECT @@innodb_lock_wait_timeout"); got != want {
				t.Errorf("timed %v: innodb_lock_wait_timeout is %s, want %s", timed, got, want)
			}
		}
		at := wiretest.Proxy(t, clocked{timed: true}, mysql.Protocol(), server.Addr)
		if got := one(t, opened(t, "mysql", dsn(t, server.URL(), at)), "SELECT @@lock_wait_timeout"); got == "3600" {
			t.Error("the login sets lock_wait_timeout")
		}
	})
	t.Run("postgres", func(t *testing.T) {
		server, err := localserver.StartPostgres(group)
		mayMiss(t, err)
		for timed, want := range map[bool]string{true: "1s", false: "1h"} {
			at := wiretest.Proxy(t, clocked{timed: timed}, postgres.Protocol(), server.Addr)
			db := opened(t, "pgx", strings.Replace(server.URL(), server.Addr, at, 1))
			if got := one(t, db, "SHOW deadlock_timeout"); got != want {
				t.Errorf("timed %v: deadlock_timeout is %s, want %s", timed, got, want)
			}
		}
	})
	t.Run("redis", func(t *testing.T) {
		server, err := localserver.StartRedis(group)
		mayMiss(t, err)
		at := wiretest.Proxy(t, clocked{timed: true}, redis.Protocol(), server.Addr)
		client := goredis.NewClient(&goredis.Options{Addr: at, MaxRetries: -1, DisableIdentity: true, ReadTimeout: 30 * time.Second})
		defer client.Close()
		if err := client.BLPop(t.Context(), 10*time.Millisecond, "none").Err(); !errors.Is(err, goredis.Nil) {
			t.Errorf("BLPOP that nobody answers: %v, want nil", err)
		}
	})
}

// mayMiss skips where a server is not installed, but not in CI.
func mayMiss(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, localserver.ErrMissing) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// dsn is what the driver takes for a URL of mysql, at another address.
func dsn(t *testing.T, text, at string) string {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u.User.String() + "@tcp(" + at + ")" + u.Path
}

func opened(t *testing.T, driver, name string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, name)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func execute(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func one(t *testing.T, db *sql.DB, query string) (value string) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(&value); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}
