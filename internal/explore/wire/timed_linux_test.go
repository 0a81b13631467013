package wire_test

import (
	"errors"
	"net/url"
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
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

// A clocked gate keeps the program's time-outs if timed is true, and removes them otherwise.
type clocked struct {
	wire.Open
	timed bool
}

func (g clocked) Timed() bool { return g.timed }

// TestTimed: the program's time-outs apply if the gate keeps them, and never expire if it does not.
func TestTimed(t *testing.T) {
	t.Run("mysql", func(t *testing.T) {
		server := localservertest.MySQL(t)
		for timed, want := range map[bool]string{true: "7", false: "3600"} {
			at := wiretest.Proxy(t, clocked{timed: timed}, mysql.Protocol(nil), server.Addr)
			db := wiretest.OpenDB(t, "mysql", dsn(t, server.URL(), at))
			wiretest.Exec(t, db, "SET SESSION innodb_lock_wait_timeout = 7")
			if got := wiretest.One(t, db, "SELECT @@innodb_lock_wait_timeout"); got != want {
				t.Errorf("timed %v: innodb_lock_wait_timeout is %s, want %s", timed, got, want)
			}
		}
		at := wiretest.Proxy(t, clocked{timed: true}, mysql.Protocol(nil), server.Addr)
		if got := wiretest.One(t, wiretest.OpenDB(t, "mysql", dsn(t, server.URL(), at)), "SELECT @@lock_wait_timeout"); got == "3600" {
			t.Error("the login sets lock_wait_timeout")
		}
	})
	t.Run("postgres", func(t *testing.T) {
		server := localservertest.Postgres(t)
		for timed, want := range map[bool]string{true: "1s", false: "1h"} {
			at := wiretest.Proxy(t, clocked{timed: timed}, postgres.Protocol(nil), server.Addr)
			db := wiretest.OpenDB(t, "pgx", strings.Replace(server.URL(), server.Addr, at, 1))
			if got := wiretest.One(t, db, "SHOW deadlock_timeout"); got != want {
				t.Errorf("timed %v: deadlock_timeout is %s, want %s", timed, got, want)
			}
		}
	})
	t.Run("redis", func(t *testing.T) {
		server := localservertest.Redis(t)
		at := wiretest.Proxy(t, clocked{timed: true}, redis.Protocol(), server.Addr)
		client := goredis.NewClient(&goredis.Options{Addr: at, MaxRetries: -1, DisableIdentity: true, ReadTimeout: 30 * time.Second})
		defer client.Close()
		if err := client.BLPop(t.Context(), 10*time.Millisecond, "none").Err(); !errors.Is(err, goredis.Nil) {
			t.Errorf("BLPOP that nobody answers: %v, want nil", err)
		}
	})
}

// dsn turns a mysql URL into the driver's form, with another address.
func dsn(t *testing.T, text, at string) string {
	t.Helper()
	u, err := url.Parse(text)
	require.NoError(t, err)
	return u.User.String() + "@tcp(" + at + ")" + u.Path
}
