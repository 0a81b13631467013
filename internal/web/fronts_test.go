package web

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
	"github.com/oversell/oversell/internal/tier"
	"github.com/oversell/oversell/internal/web/webtest"
)

// TestSoldOutAhead: with the sold-out check, a late buyer is refused at once, even while another
// buyer holds the strategy's lock. The metrics count this refusal like any other. Without the check
// the buyer waits.
func TestSoldOutAhead(t *testing.T) {
	t.Parallel()
	enginetest.EachDatabase(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		e := open(t)
		if e.Name == engine.Embedded {
			t.Skip("only the shop holds a lock there")
		}
		for _, checked := range []bool{true, false} {
			t.Run(fmt.Sprintf("check=%v", checked), func(t *testing.T) {
				wait := time.Minute // a slow machine needs seconds
				if !checked {
					wait = 3 * time.Second // the late buyer waits for as long
				}
				base := startServe(t, e.URLs, waitFor(wait), func(s *setup) { s.SoldOutCheck = checked })
				webtest.Restock(t, base, "apple", 1)
				buy := func(query string, header http.Header) response {
					return webtest.Call(t, http.MethodPost, base+"/product/buy?lock=for-update&purchaser=ann"+query, "", header)
				}
				key := http.Header{"Idempotency-Key": {"a-key"}}
				sold := buy("", key)
				if sold.Status != http.StatusOK {
					t.Fatalf("%d %s", sold.Status, sold.Body)
				}
				webtest.WantProblem(t, buy("", nil), http.StatusConflict, "sold_out")
				hold := e.DB.Begin()
				require.NoError(t, hold.Exec("SELECT id FROM product WHERE name = 'apple' FOR UPDATE").Error)
				late := buy("", nil)
				if checked {
					webtest.WantProblem(t, buy("", http.Header{"Idempotency-Key": {"another"}}), http.StatusConflict, "sold_out")
				}
				if again := buy("", key); again.Status != http.StatusOK || string(again.Body) != string(sold.Body) {
					t.Errorf("the retry: %d %s, want %s", again.Status, again.Body, sold.Body)
				}
				require.NoError(t, hold.Rollback().Error)
				if !checked {
					webtest.WantProblem(t, late, http.StatusServiceUnavailable, "busy")
					return
				}
				if p := webtest.WantProblem(t, late, http.StatusConflict, "sold_out"); p.Detail != "sold out: 0 left" || late.Header.Get("Shop-Buy-Span") == "" {
					t.Errorf("%+v, %v", p, late.Header)
				}
				metrics := string(webtest.Call(t, http.MethodGet, base+"/metrics", "", nil).Body)
				expect.Contains(t, metrics, `shop_buys_total{outcome="sold_out",strategy="for-update"} 3`, "/metrics")
				webtest.Restock(t, base, "apple", 5)
				webtest.WantProblem(t, buy("&amount=6", nil), http.StatusConflict, "sold_out")
				webtest.WantStatus(t, buy("&amount=5", nil), http.StatusOK, "after a restock")
			})
		}
	})
}

// TestAdmission: while buyers wait for a locked row, new buyers are told at once that the shop is
// busy, and when to come back. Nothing is recorded for refused buyers.
func TestAdmission(t *testing.T) {
	t.Parallel()
	enginetest.EachDatabase(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		e := open(t)
		if e.Name == engine.Embedded {
			t.Skip("only the shop holds a lock there")
		}
		base := startServe(t, e.URLs, waitFor(time.Minute))
		webtest.Restock(t, base, "apple", 10_000)
		hold := e.DB.Begin()
		require.NoError(t, hold.Exec("SELECT id FROM product WHERE name = 'apple' FOR UPDATE").Error)
		var came atomic.Int64
		buy := func() response {
			// Each buyer has another name, since the shop would delay its answer to a repeated name.
			return webtest.Call(t, http.MethodPost, fmt.Sprintf("%s/product/buy?lock=for-update&purchaser=ann-%d", base, came.Add(1)), "", nil)
		}
		var all sync.WaitGroup
		var sold, refused atomic.Int64
		come := func() {
			all.Go(func() {
				switch r := buy(); r.Status {
				case http.StatusOK:
					sold.Add(1)
				case http.StatusServiceUnavailable:
					refused.Add(1)
				default:
					t.Errorf("%d %s", r.Status, r.Body)
				}
			})
		}
		for range 256 {
			come()
		}
		webtest.Eventually(t, "the crowd stays, and the next one is refused", func() bool {
			come()
			return refused.Load() > 0
		})
		for range 20 {
			r := buy()
			webtest.WantProblem(t, r, http.StatusServiceUnavailable, "busy")
			if seconds, err := strconv.Atoi(r.Header.Get("Retry-After")); err != nil || seconds < 1 || seconds > 30 {
				t.Errorf("Retry-After %q", r.Header.Get("Retry-After"))
			}
			refused.Add(1)
		}
		require.NoError(t, hold.Rollback().Error)
		all.Wait()
		if sold.Load() < 256 {
			t.Errorf("%d sales, want one for each admitted buyer", sold.Load())
		}
		if got := webtest.Audit(t, base, "apple"); int64(got.Records) != sold.Load() || got.Drift != 0 {
			t.Errorf("%d records, drift %d; want %d, and none for the %d refused buyers", got.Records, got.Drift, sold.Load(), refused.Load())
		}
	})
}

// refusing is a private database that can be made to refuse an ordinary user.
type refusing struct {
	admin, till       string // URLs of the administrator and of the ordinary user
	user              []string
	readOnly, write   []string
	fewer, enough     []string // statements that limit the connections, and that end the limit
	saysRead, saysFew string
}

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
			require.NoError(t, err)
			defer e.Close()
			execute := func(statements []string) {
				t.Helper()
				for _, statement := range statements {
					require.NoError(t, e.DB.Exec(statement).Error, statement)
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
			expect.Equal(t, webtest.Audit(t, base, "apple").Drift, 0, "drift")
		})
	}
}

// writers returns strategies that write in different ways.
func writers() []string { return []string{"none", "for-update", "conditional", "coalesced"} }

func (d refusing) whileReadOnly(t *testing.T, execute func([]string), base string) {
	buy := func(strategy string) response {
		return webtest.Call(t, http.MethodPost, base+"/product/buy?lock="+strategy, "", nil)
	}
	before := webtest.Audit(t, base, "apple")
	execute(d.readOnly)
	for _, strategy := range writers() {
		webtest.Eventually(t, strategy+" is refused", func() bool { return buy(strategy).Status != http.StatusOK }) // a server applies its settings after a while
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
	require.NoError(t, err)
	for range 12 { // connections that stay open, so that the limit is reached
		conn, err := pool.Conn(t.Context())
		require.NoError(t, err)
		defer conn.Close()
	}
	hold := db.Begin()
	require.NoError(t, hold.Exec("SELECT id FROM product WHERE name = 'apple' FOR UPDATE").Error)
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
	require.NoError(t, hold.Rollback().Error)
	all.Wait()
	for _, strategy := range writers() {
		webtest.Eventually(t, strategy+" sells again", func() bool {
			return webtest.Call(t, http.MethodPost, base+"/product/buy?lock="+strategy, "", nil).Status == http.StatusOK
		})
	}
}
