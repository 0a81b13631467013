package mysql_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/explore/wire"
	"github.com/oversell/oversell/internal/explore/wire/mysql"
	"github.com/oversell/oversell/internal/explore/wire/wiretest"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/tier"
)

// The tests share one server. Each has tables of its own.
var (
	group  *localserver.Group
	server = sync.OnceValues(func() (*localserver.MySQL, error) {
		var err error
		if group, err = localserver.NewGroup(); err != nil {
			return nil, err
		}
		return localserver.StartMariaDB(group)
	})
)

func TestMain(m *testing.M) {
	code := m.Run()
	if group != nil {
		if err := group.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// mariadb returns the server's address and the password of its user shop.
func mariadb(t testing.TB) (address, password string) {
	t.Helper()
	tier.Test(t, "needs servers")
	s, err := server()
	if errors.Is(err, localserver.ErrMissing) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	require.NoError(t, err)
	user, _, _ := strings.Cut(strings.TrimPrefix(s.URL(), "mysql://shop:"), "@")
	return s.Address(), user
}

func open(t testing.TB, address, password, options string) *sql.DB {
	t.Helper()
	return openAs(t, "shop:"+password+"@tcp("+address+")/shop?"+options)
}

func openAs(t testing.TB, name string) *sql.DB {
	t.Helper()
	return wiretest.OpenDB(t, "mysql", name)
}

// admin returns a connection that bypasses the gate.
func admin(t testing.TB) *sql.DB {
	t.Helper()
	address, password := mariadb(t)
	return open(t, address, password, "multiStatements=true")
}

// A gate holds no command. Read its commands only after a connection has ended.
type gate struct {
	wiretest.Recorder
	joined chan *wire.Conn
	left   chan error
}

func newGate() *gate {
	return &gate{joined: make(chan *wire.Conn, 100), left: make(chan error, 100)}
}

func (g *gate) Entered(*wire.Conn)           {}
func (g *gate) Joined(c *wire.Conn)          { g.joined <- c }
func (g *gate) Left(_ *wire.Conn, err error) { g.left <- err }

func (g *gate) end(t testing.TB) error {
	t.Helper()
	return wait(t, g.left)
}

func wait[T any](t testing.TB, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(20 * time.Second):
		t.Fatal("nothing came for 20 s")
	}
	return v
}

func proxy(t testing.TB) (g *gate, address, password string) {
	t.Helper()
	server, password := mariadb(t)
	g = newGate()
	return g, wiretest.Proxy(t, g, mysql.Protocol(nil), server), password
}
