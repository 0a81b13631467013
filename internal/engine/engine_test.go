package engine_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
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
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if _, err := os.Stat(path); err != nil {
		t.Errorf("not where the URL says: %v", err)
	}
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
	if err := e.DB.Raw(read).Scan(&setting).Error; err != nil {
		t.Fatal(err)
	}
	if setting.Value == "" {
		t.Skip("this server is MySQL, or a MariaDB from before 10.6.18: it has no such setting")
	}
	if err := e.DB.Exec("SET GLOBAL innodb_snapshot_isolation = ON").Error; err != nil {
		t.Fatal(err)
	}
	defer e.DB.Exec("SET GLOBAL innodb_snapshot_isolation = DEFAULT")
	late := enginetest.Local(t)
	if err := late.DB.Raw(read).Scan(&setting).Error; err != nil || setting.Value != "OFF" {
		t.Errorf("%v, %v; want OFF", setting, err)
	}
}

// TestCheckHung: the check finds a hanging server in time, and names no other.
func TestCheckHung(t *testing.T) {
	node := localservertest.Redis(t)
	e, err := engine.Open(t.Context(), engine.Config{
		DB: "sqlite://" + filepath.Join(t.TempDir(), "shop.db"), Redis: node.URL(), Wait: enginetest.Wait, Conns: 4,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := node.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if down := e.Check(ctx); len(down) != 1 || down["redis"] == nil {
		t.Errorf("down: %v, want redis alone", down)
	}
}
