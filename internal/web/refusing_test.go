package web

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
	"github.com/oversell/oversell/internal/tier"
	"github.com/oversell/oversell/internal/web/webtest"
)

// refusing is a private database that can be made to refuse an ordinary user.
type refusing struct {
	admin, till       string // URLs
	user              []string
	readOnly, write   []string
	fewer, enough     []string // connections
	saysRead, saysFew string
}

// refusingDatabases start the servers.
func refusingDatabases() map[string]func(t *testing.T) refusing {
	as := func(url string) string {
		_, at, _ := strings.Cut(url, "@")
		scheme, _, _ := strings.Cut(url, "://")
		return scheme + "://till:till@" + at
	}
	return map[string]func(t *testing.T) refusing{
		"mysql": func(t *testing.T) refusing {
			url := localservertest.MySQL(t).URL()
			return refusing{
				admin: url, till: as(url),
				user:     []string{"CREATE USER 'till'@'127.0.0.1' IDENTIFIED BY 'till'", "GRANT ALL ON shop.* TO 'till'@'127.0.0.1'"},
				readOnly: []string{"SET GLOBAL read_only = 1"}, write: []string{"SET GLOBAL read_only = 0"},
				fewer: []string{"SET GLOBAL max_connections = 10"}, enough: []string{"SET GLOBAL max_connections = 500"},
				saysRead: "read-only", saysFew: "Too many connections",
			}
		},
		"postgres": func(t *testing.T) refusing {
			url := localservertest.Postgres(t).URL()
			reload := "SELECT pg_reload_conf()"
			return refusing{
				admin: url, till: as(url),
				user:     []string{"CREATE ROLE till LOGIN PASSWORD 'till'", "ALTER DATABASE shop OWNER TO till"},
				readOnly: []string{"ALTER SYSTEM SET default_transaction_read_only = on", reload},
				write:    []string{"ALTER SYSTEM RESET default_transaction_read_only", reload},
				fewer:    []string{"ALTER ROLE till CONNECTION LIMIT 1"}, enough: []string{"ALTER ROLE till CONNECTION LIMIT -1"},
				saysRead: "read-only", saysFew: "too many connections",
			}
		},
	}
}

// TestDatabaseRefuses: the error names a database that refuses writes or further connections.
// Nothing is sold meanwhile, and the shop sells again by itself afterwards.
func TestDatabaseRefuses(t *testing.T) {
	t.Parallel()
	tier.Test(t, "needs servers")
	for name, start := range refusingDatabases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := start(t)
			e, err := engine.Open(t.Context(), engine.Config{DB: d.admin, Wait: 30 * time.Second, Conns: 16})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			execute := func(statements []string) {
				t.Helper()
				for _, statement := range statements {
					if err := e.DB.Exec(statement).Error; err != nil {
						t.Fatalf("%s: %v", statement, err)
					}
				}
			}
			execute(d.user)
			if name == "postgres" { // the tables belong to their creator
				execute([]string{"DROP SCHEMA public CASCADE", "CREATE SCHEMA public AUTHORIZATION till"})
			}
			base := startServe(t, engine.Config{DB: d.till}, waitFor(30*time.Second))
			webtest.Restock(t, base, "apple", 1_000)
			t.Run("read-only", func(t *testing.T) { d.whileReadOnly(t, execute, base) })
			t.Run("connections", func(t *testing.T) { d.whileFull(t, execute, e.DB, base) })
			if got := webtest.Audit(t, base, "apple"); got.Drift != 0 {
				t.Errorf("stock and records %+v", got)
			}
		})
	}
}

// writers returns strategies with statements of their own, and one that combines sales.
func writers() []string { return []string{"none", "for-update", "conditional", "coalesced"} }

func (d refusing) whileReadOnly(t *testing.T, execute func([]string), base string) {
	buy := func(strategy string) response {
		return webtest.Call(t, http.MethodPost, base+"/product/buy?lock="+strategy, "", nil)
	}
	before := webtest.Audit(t, base, "apple")
	execute(d.readOnly)
	for _, strategy := range writers() {
		webtest.Eventually(t, strategy+" is refused", func() bool { return buy(strategy).Status != http.StatusOK }) // a server reads its settings after a while
		p := webtest.WantProblem(t, buy(strategy), http.StatusServiceUnavailable, "failed")
		if !strings.Contains(p.Detail, "the database is down") || !strings.Contains(p.Detail, d.saysRead) {
			t.Errorf("%s: %q does not say what is wrong", strategy, p.Detail)
		}
	}
	restocked := webtest.Call(t, http.MethodPut, base+"/product/apple", `{"amount":7}`, nil)
	webtest.WantProblem(t, restocked, http.StatusServiceUnavailable, "failed")
	if got := webtest.Audit(t, base, "apple"); got.Stocked != before.Stocked || got.Drift != 0 {
		t.Errorf("stock and records %+v, before %+v", got, before)
	}
	execute(d.write)
	for _, strategy := range writers() {
		webtest.Eventually(t, strategy+" sells again", func() bool { return buy(strategy).Status == http.StatusOK })
	}
}

func (d refusing) whileFull(t *testing.T, execute func([]string), db *gorm.DB, base string) {
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	for range 12 { // they stay open, so that the limit is reached
		conn, err := pool.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	hold := db.Begin()
	if err := hold.Exec("SELECT id FROM product WHERE name = 'apple' FOR UPDATE").Error; err != nil {
		t.Fatal(err)
	}
	execute(d.fewer)
	var all sync.WaitGroup
	answers := make(chan response, 1_000)
	var refused *response
	webtest.Eventually(t, "a buyer finds no connection", func() bool {
		all.Go(func() { answers <- webtest.Call(t, http.MethodPost, base+"/product/buy?lock=for-update", "", nil) })
		select {
		case r := <-answers:
			refused = &r
		default:
		}
		return refused != nil
	})
	p := webtest.WantProblem(t, *refused, http.StatusServiceUnavailable, "failed")
	if !strings.Contains(p.Detail, "the database is down") || !strings.Contains(p.Detail, d.saysFew) {
		t.Errorf("%q does not say what is wrong", p.Detail)
	}
	execute(d.enough)
	if err := hold.Rollback().Error; err != nil {
		t.Fatal(err)
	}
	all.Wait()
	for _, strategy := range writers() {
		webtest.Eventually(t, strategy+" sells again", func() bool {
			return webtest.Call(t, http.MethodPost, base+"/product/buy?lock="+strategy, "", nil).Status == http.StatusOK
		})
	}
}
