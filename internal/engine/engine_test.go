package engine_test

import (
	"context"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

// TestMigrateTogether: shops that start at once on one new file all find their schema.
func TestMigrateTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop 100%.db")
	file := "sqlite://" + (&url.URL{Path: path}).EscapedPath()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			e, err := engine.Open(t.Context(), engine.Config{DB: file, Wait: enginetest.Wait, Conns: 4})
			if err != nil {
				t.Error(err)
				return
			}
			expect.NoError(t, e.Close())
		})
	}
	all.Wait()
	expect.NoError(t, expect.ErrorOf(os.Stat(path)), "not where the URL says")
}

// TestBadURL: an invalid address is rejected before any connection is opened.
func TestBadURL(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct{ url, says string }{
		{"sqlite://shop.db", "names no file"},
		{"sqlite:shop.db", "names no file"},
		{"sqlite://", "names no file"},
		{"sqlite:///tmp/x.db?mode=ro", "names no file"},
		{"sqlite:///nowhere/x.db", "folder /nowhere does not exist"},
		{"sqlite:///tmp", "is a folder"},
		{"mysql://a:b@/shop", "names no host"},
		{"mysql://a:b@127.0.0.1:1", "names no database"},
		{"mysql://a:b@127.0.0.1:1/shop?tls=magic", "magic"},
		{"mysql://a:b@127.0.0.1:1,127.0.0.1:1/shop", "occurs twice"},
		{"mysql://a:b@127.0.0.1,127.0.0.1:3306/shop", "127.0.0.1:3306 occurs twice"},
		{"mysql://a:12/w@127.0.0.1:1/shop", "percent-encode"},
		{"mysql://a:b@127.0.0.1:1,/shop", "is not a host"},
		{"mysql://a:b@127.0.0.1:1,127.0.0.1:x/shop", "not a URL"},
		{"postgres://a:b@127.0.0.1:1,127.0.0.1:2/shop", "several hosts"},
		{"oracle://x/y", "unknown scheme"},
		{"%zz", "not a URL"},
	} {
		e, err := engine.Open(t.Context(), engine.Config{DB: c.url, Wait: enginetest.Wait, Conns: 4})
		if err == nil {
			_ = e.Close()
			t.Errorf("%s was opened", c.url)
		} else if !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want something with %q", c.url, err, c.says)
		}
	}
	if left, _ := filepath.Glob("*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestSnapshotIsolation: a buyer's transaction uses MySQL's REPEATABLE READ with any default of the
// server. MariaDB's default since 11.6.2 would refuse the write with which the broken strategy
// "transaction" oversells.
func TestSnapshotIsolation(t *testing.T) {
	e := enginetest.Local(t)
	var setting struct{ Value string }
	read := "SHOW SESSION VARIABLES LIKE 'innodb_snapshot_isolation'"
	require.NoError(t, e.DB.Raw(read).Scan(&setting).Error)
	if setting.Value == "" {
		t.Skip("this server is MySQL, or a MariaDB from before 10.6.18: it has no such setting")
	}
	require.NoError(t, e.DB.Exec("SET GLOBAL innodb_snapshot_isolation = ON").Error)
	defer e.DB.Exec("SET GLOBAL innodb_snapshot_isolation = DEFAULT")
	late := enginetest.Local(t)
	if err := late.DB.Raw(read).Scan(&setting).Error; err != nil || setting.Value != "OFF" {
		t.Errorf("%v, %v; want OFF", setting, err)
	}
}

// TestCheckHung: the check finds a hanging server in time, and names no other server.
func TestCheckHung(t *testing.T) {
	node := localservertest.Redis(t)
	e, err := engine.Open(t.Context(), engine.Config{
		DB: "sqlite://" + filepath.Join(t.TempDir(), "shop.db"), Redis: node.URL(), Wait: enginetest.Wait, Conns: 4,
	})
	require.NoError(t, err)
	defer e.Close()
	require.NoError(t, node.Signal(syscall.SIGSTOP))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if down := e.Check(ctx); len(down) != 1 || down["redis"] == nil {
		t.Errorf("down: %v, want redis alone", down)
	}
}

func TestParseDetours(t *testing.T) {
	for _, text := range []string{"", "127.0.0.1:1=127.0.0.1:2", "a:1=b:2,c:3=d:4"} {
		d, err := engine.ParseDetours(text)
		if err != nil || d.String() != text {
			t.Errorf("%q: %q, %v", text, d, err)
		}
	}
	for text, says := range map[string]string{
		"a:1": "not host:port=host:port", "a=b": "not host:port=host:port", "a:1=b:2,": "not host:port=host:port", "a:=b:1": "not host:port=host:port",
		"a:1=b:2,a:1=c:3": "a:1 occurs twice",
	} {
		if _, err := engine.ParseDetours(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want something with %q", text, err, says)
		}
	}
}

// TestDetour: both drivers connect to the detour and not to the given address, on which no server
// listens.
func TestDetour(t *testing.T) {
	redis := miniredis.RunT(t)
	database, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer database.Close()
	called := make(chan struct{}, 1)
	go func() {
		if conn, err := database.Accept(); err == nil {
			called <- struct{}{}
			_ = conn.Close()
		}
	}()
	detours := engine.Detours{"127.0.0.1:1": redis.Addr(), "127.0.0.1:2": database.Addr().String()}
	e, err := engine.Open(t.Context(), engine.Config{
		DB: "sqlite://" + t.TempDir() + "/shop.db", Redis: "redis://127.0.0.1:1", Redlock: []string{"redis://127.0.0.1:1"},
		Wait: time.Second, Conns: 4, Detours: detours,
	})
	require.NoError(t, err)
	expect.NoError(t, e.Close())
	_, err = engine.Open(t.Context(), engine.Config{DB: "mysql://u:p@127.0.0.1:2/shop", Wait: time.Second, Conns: 4, Detours: detours})
	if err == nil {
		t.Error("a listener that says nothing was taken for a database")
	}
	select {
	case <-called:
	case <-time.After(10 * time.Second):
		t.Error("the driver of MySQL did not take the detour")
	}
}

// TestSQLiteCancelled ends a context at about the time when its statement begins. A statement without
// an error has run, and one with an error leaves no transaction behind.
func TestSQLiteCancelled(t *testing.T) {
	pool, err := enginetest.Embedded(t).DB.DB()
	require.NoError(t, err)
	begin := func(ctx context.Context) (begun bool) {
		conn, err := pool.Conn(t.Context())
		require.NoError(t, err)
		defer conn.Close()
		if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
			return false
		}
		require.NoError(t, expect.ErrorOf(conn.ExecContext(t.Context(), "ROLLBACK")))
		return true
	}
	begun := 0
	for range 2_000 {
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		if begin(ctx) {
			begun++
		}
		if !begin(t.Context()) {
			t.Fatal("a transaction is left behind")
		}
	}
	if begun == 0 {
		t.Error("no transaction began")
	}
}
