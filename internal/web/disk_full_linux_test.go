package web

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/tier"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
	"github.com/oversell/oversell/internal/web/webtest"
)

// TestDiskFull: the error names a database whose disk is full. Nothing is sold meanwhile, and the
// shop sells again by itself when there is space.
func TestDiskFull(t *testing.T) {
	for _, d := range []struct {
		name  string
		start func(t *testing.T, disk string) (url string)
		says  string
	}{
		{"mysql", func(t *testing.T, _ string) string { return localservertest.MySQL(t).URL() }, "is full"},
		{"postgres", func(t *testing.T, _ string) string { return localservertest.Postgres(t).URL() }, "No space left on device"},
		{"sqlite", func(_ *testing.T, disk string) string { return "sqlite://" + filepath.Join(disk, "shop.db") }, "full"},
	} {
		t.Run(d.name, func(t *testing.T) {
			tier.Test(t, "needs servers")
			disk := diskOfItsOwn(t)
			t.Setenv("TMPDIR", disk) // the folder of the private servers
			url := d.start(t, disk)
			e, err := engine.Open(t.Context(), engine.Config{DB: url, Wait: 30 * time.Second, Conns: 4})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			base := startServe(t, engine.Config{DB: url}, waitFor(30*time.Second))
			webtest.Restock(t, base, "apple", 1_000)
			buy := func(strategy string) response {
				return webtest.Call(t, http.MethodPost, base+"/product/buy?lock="+strategy, "", nil)
			}
			fill(t, e.DB, disk)
			for _, strategy := range writers() {
				// Sales go on until the last page is full.
				webtest.Eventually(t, strategy+" is refused", func() bool { return buy(strategy).Status != http.StatusOK })
				p := webtest.WantProblem(t, buy(strategy), http.StatusServiceUnavailable, "failed")
				if !strings.Contains(p.Detail, "the database is down") || !strings.Contains(p.Detail, d.says) {
					t.Errorf("%s: %q does not say what is wrong", strategy, p.Detail)
				}
			}
			if err := os.Remove(filepath.Join(disk, filler)); err != nil {
				t.Fatal(err)
			}
			for _, strategy := range writers() {
				webtest.Eventually(t, strategy+" sells again", func() bool { return buy(strategy).Status == http.StatusOK })
			}
			if got := webtest.Audit(t, base, "apple"); got.Drift != 0 {
				t.Errorf("stock and records %+v", got)
			}
		})
	}
}

// diskOfItsOwn returns a file system in memory that ends with the test.
func diskOfItsOwn(t *testing.T) string {
	t.Helper()
	disk, err := os.MkdirTemp("", "oversell-disk-") // outside the test's folder, which the servers' users may not enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(disk) })
	if err := syscall.Mount("oversell", disk, "tmpfs", 0, "size=400m,mode=1777"); err != nil {
		t.Skipf("a file system that may be filled is mounted by root alone: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Errorf("unmount %s: %v", disk, err)
		}
	})
	return disk
}

const filler = "filler"

// fill fills the disk, and the space that the database has reserved for its records.
func fill(t *testing.T, db *gorm.DB, disk string) {
	t.Helper()
	f, err := os.Create(filepath.Join(disk, filler))
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 1<<20)
	for len(block) > 0 {
		if _, err := f.Write(block); err != nil { // it has written as much as fits
			block = block[:len(block)/2]
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	const records = "INSERT INTO purchase_history (product_name, purchaser, purchase_time, amount, strategy, left_after, waited_ms) VALUES "
	for n := 512; n > 0; {
		rows := strings.TrimSuffix(strings.Repeat(fmt.Sprintf("('pear', '%s', '2026-01-01', 1, 'none', 0, 0),", strings.Repeat("x", 200)), n), ",")
		if err := db.Exec(records + rows).Error; err != nil {
			n /= 2
		}
	}
}
