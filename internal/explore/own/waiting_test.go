package own_test

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/tier"
)

// crossed locks two rows; buyer 2 locks them in the opposite order.
type crossed struct{ deps lockstrategy.Deps }

// beside is a row that no buyer buys.
const beside = "beside"

func (s crossed) Buy(ctx context.Context, o purchase.Order) (receipt purchase.Receipt, err error) {
	rows := []string{o.Product, beside}
	if o.Purchaser == "buyer-2" {
		slices.Reverse(rows)
	}
	receipt = purchase.Receipt{Product: o.Product, Purchaser: o.Purchaser, Amount: 1, Strategy: "planted"}
	err = purchase.InTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
		for _, name := range rows {
			p, err := product.ForUpdate(tx, name)
			if err != nil {
				return purchase.DatabaseError(ctx, "lock "+name, err)
			}
			if p.Amount < 1 {
				return purchase.ErrSoldOut
			}
		}
		if err := tx.Exec("UPDATE product SET amount = amount - 1 WHERE name = ?", o.Product).Error; err != nil {
			return purchase.DatabaseError(ctx, "take one", err)
		}
		return purchase.Insert(ctx, tx, "", s.deps.Now(), &receipt)
	})
	return receipt, err
}

// TestDeadlock: if two buyers wait for each other, the database refuses a statement of one, and the
// other continues. Each run of the schedule ends in the same way, and so does each search.
func TestDeadlock(t *testing.T) {
	for _, c := range []struct {
		name   string
		open   func(*testing.T) *engine.Engine
		code   string
		victim int
	}{
		{"MariaDB", enginetest.Local, "1213", 2},
		{"PostgreSQL", enginetest.Postgres, "40P01", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := c.open(t)
			require.NoError(t, product.Put(e.Admin.WithContext(t.Context()), beside, 1))
			entry := lockstrategy.Entry{Name: "planted", New: func(d lockstrategy.Deps) purchase.Strategy { return crossed{d} }}
			config := exploretest.Config(e, entry)
			x := exploretest.Open(t, config)
			digests := map[string]bool{}
			for range 3 {
				result, err := x.Search(t.Context())
				if err != nil || !result.Complete || len(result.Verdicts) != 1 || result.Verdicts[verdict.Holds] == 0 {
					t.Fatalf("%+v, %v", result, err)
				}
				digests[result.Digest] = true
			}
			if len(digests) != 1 {
				t.Errorf("three searches took %d courses", len(digests))
			}
			// Each buyer has locked a row. Buyer 1 waits for the other row, and buyer 2 completes
			// the deadlock.
			w, err := x.Replay(t.Context(), "v1:planted:b2:s1:1*2.2*2.1.2*2.1*3")
			require.NoError(t, err)
			lost, other := w.Outcomes[c.victim-1], w.Outcomes[2-c.victim]
			if lost.Answer != "busy" || !strings.Contains(lost.Error, c.code) || other.Answer != "sold" {
				t.Errorf("%+v, want that buyer %d is told %s and the other one is sold to", w.Outcomes, c.victim, c.code)
			}
			exploretest.Replays(t, x, w)
		})
	}
}

// TestTimeoutShown: a buyer whose wait times out sees the error of its database.
func TestTimeoutShown(t *testing.T) {
	for _, c := range []struct {
		engine   string
		strategy string
		line     string
		command  string
		result   string
	}{
		{"embedded", "for-update", "v1:for-update:b2:s1:1.2.timeout2.1*4", "BEGIN IMMEDIATE", "database is locked"},
		{"local", "for-update", "v1:for-update:b2:s1:1*2.2*2.timeout2.2.1*3", "(timed out) SELECT", "1205"},
		{"local", "named-lock", "v1:named-lock:b2:s1:1.2.timeout2.1*6", "(timed out) SELECT GET_LOCK", "=0"},
		{"postgres", "for-update", "v1:for-update:b2:s1:1*2.2*2.timeout2.2.1*3", "(timed out) SELECT", "55P03"},
		{"postgres", "named-lock", "v1:named-lock:b2:s1:1*2.2*2.timeout2.2.1*4", "(timed out) SELECT pg_advisory_xact_lock", "55P03"},
	} {
		t.Run(c.engine+"/"+c.strategy, func(t *testing.T) {
			e := map[string]func(*testing.T) *engine.Engine{
				"embedded": enginetest.Embedded, "local": enginetest.Local, "postgres": enginetest.Postgres,
			}[c.engine]
			entry := exploretest.Entry(t, c.strategy)
			config := exploretest.Config(e(t), entry)
			config.Events = []explore.Event{explore.Timeout}
			x := exploretest.Open(t, config)
			w, err := x.Replay(context.WithoutCancel(t.Context()), c.line)
			require.NoError(t, err)
			if w.Broken() || w.Outcomes[0].Answer != "sold" || w.Outcomes[1].Answer != "busy" {
				t.Errorf("%s, %+v", w.Verdict, w.Outcomes)
			}
			for _, s := range w.Steps {
				if strings.HasPrefix(s.Command, c.command) && strings.Contains(s.Result, c.result) {
					exploretest.Replays(t, x, w)
					return
				}
			}
			t.Errorf("no step is %q with %q: %+v", c.command, c.result, w.Steps)
		})
	}
}

// slow is longer than every time-out of a strategy: 1.5 s for one lock of a multi lock, 2 s for a
// release.
const slow = 2200 * time.Millisecond

// delayed makes a Redis answer one command late, like a machine that has stalled.
type delayed struct {
	mu    sync.Mutex
	left  int // number of commands until the late one
	hooks map[redis.UniversalClient]bool
}

func (d *delayed) watch(client redis.UniversalClient) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if client != nil && !d.hooks[client] {
		d.hooks[client] = true
		client.(*redis.Client).AddHook(d)
	}
}

func (d *delayed) due() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left--
	return d.left == 0
}

func (d *delayed) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (d *delayed) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		switch strings.ToLower(cmd.Name()) {
		case "hello", "client", "select":
			return next(ctx, cmd)
		}
		if d.due() {
			time.Sleep(slow)
		}
		return next(ctx, cmd)
	}
}

func (d *delayed) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// TestSlowMachine: a schedule runs in the same way if a step takes long. No time-out of a strategy
// expires by itself. Otherwise a multi lock could time out while its buyer waits at node b, and the
// buyer would release node a, although the schedule contains no time-out.
func TestSlowMachine(t *testing.T) {
	e := enginetest.Embedded(t)
	for _, c := range []struct {
		strategy string
		line     string
		late     int // number of the late command, from 1
	}{
		{"multilock", "v1:multilock:b2:s1:1a.expire.2a.2b.1b.2c.2*5.2c.2b.2a.1b.1c.1.1c.1b.1a", 5},
		{"redisson", "v1:redisson:b2:s1:1*6.2.1.2*3", 2},
		{"redlock", "v1:redlock:b2:s1:1a.1b.1c.1*5.2a.2b.2c.1a.1b.1c.2a.2b.2c.2a.2b.2c.2.2a.2b.2c", 4},
	} {
		t.Run(c.strategy, func(t *testing.T) {
			if tier.Quick() && c.strategy != "multilock" {
				t.Skip("a late answer takes 2.2 s; -short runs only the case that once failed")
			}
			entry := exploretest.Entry(t, c.strategy)
			late := &delayed{hooks: map[redis.UniversalClient]bool{}}
			build := entry.New
			entry.New = func(d lockstrategy.Deps) purchase.Strategy {
				late.watch(d.Redis)
				for _, node := range d.Redlock {
					late.watch(node)
				}
				return build(d)
			}
			config := exploretest.Config(e, entry)
			config.Events = []explore.Event{explore.Expire}
			x := exploretest.Open(t, config)
			quick, err := x.Replay(t.Context(), c.line)
			require.NoError(t, err)
			late.left = c.late
			again, err := x.Replay(t.Context(), c.line)
			require.NoError(t, err)
			if late.left > 0 {
				t.Errorf("no command was late: there were %d too few", late.left)
			}
			if again.Verdict != quick.Verdict || len(again.Steps) != len(quick.Steps) {
				t.Errorf("%s in %d steps, and with a late answer %s in %d", quick.Verdict, len(quick.Steps), again.Verdict, len(again.Steps))
			}
		})
	}
}
