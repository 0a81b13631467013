package lockstrategy_test

import (
	"cmp"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/load/sizing"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/purchase"
)

// pathOf counts the statements that MariaDB received from one sale (testdata/sql), and the commands
// that a single buyer sends to Redis. The time that the next buyer waits follows from the kind of
// queue. Uncounted has the other figures, and overrides counted ones unless it is zero.
func pathOf(t *testing.T, e *engine.Engine, entry lockstrategy.Entry) sizing.Path {
	t.Helper()
	p := entry.Uncounted
	statements := received(t, entry)
	p.SQL, p.RowSQL = len(statements), rowSQL(t, statements)
	if p.Lock == 0 {
		p.Lock = countLock(t, e, entry)
	}
	if p.Nodes == sizing.NoServers {
		p.Nodes = nodesOf(entry)
	}
	switch {
	case entry.WaitsFor == lockstrategy.WaitLock && len(entry.Needs) > 0:
		p.Keeps = sizing.All
	case entry.WaitsFor != lockstrategy.WaitRow && p.Rows == 0:
		p.Keeps = sizing.Process
	}
	if p.Keeps != sizing.Nobody {
		p.TurnSQL, p.TurnLock = cmp.Or(p.TurnSQL, p.SQL), cmp.Or(p.TurnLock, p.Lock)
		p.TurnCommits = commits(statements[:p.TurnSQL])
	}
	return p
}

// nodesOf says how the servers of a lock share its keys, unless the entry has a value of its own.
func nodesOf(entry lockstrategy.Entry) sizing.Sharing {
	switch {
	case entry.Uncounted.Nodes != sizing.NoServers:
		return entry.Uncounted.Nodes
	case slices.Contains(entry.Needs, lockstrategy.NeedsRedis):
		return sizing.ByKey
	case slices.Contains(entry.Needs, lockstrategy.NeedsRedlock):
		return sizing.AllAtOnce
	case slices.Contains(entry.Needs, lockstrategy.NeedsZookeeper), slices.Contains(entry.Needs, lockstrategy.NeedsEtcd):
		return sizing.OneLeader
	case slices.Contains(entry.Needs, lockstrategy.NeedsNamedLocks):
		return sizing.InSession
	}
	return sizing.NoServers
}

// received reads the statements that MariaDB received from one sale.
func received(t *testing.T, entry lockstrategy.Entry) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "sql", entry.Name+".sql"))
	if err != nil {
		t.Fatal(err)
	}
	statements := strings.Split(strings.TrimSpace(string(text)), "\n")
	if entry.WritesLater || entry.AdmitsFirst { // the first buyer of a product copies its stock to Redis
		return statements[1:]
	}
	if entry.Uncounted.Rows > 0 { // or divides the stock
		buys := strings.SplitAfter(string(text), "COMMIT;\n")
		return strings.Split(strings.TrimSpace(buys[len(buys)-2]), "\n")
	}
	return statements
}

// rowSQL counts the round trips from the statement that locks the row to COMMIT.
func rowSQL(t *testing.T, statements []string) int {
	t.Helper()
	begin, commit := slices.Index(statements, "START TRANSACTION;"), slices.Index(statements, "COMMIT;")
	for n, s := range statements[begin:commit] {
		// At SERIALIZABLE each read takes a lock.
		reads := strings.Contains(s, "FOR UPDATE") || strings.Contains(statements[0], "SERIALIZABLE") && strings.HasPrefix(s, "SELECT")
		if strings.HasPrefix(s, "UPDATE product") || reads {
			return commit - begin - n
		}
	}
	t.Fatalf("nothing locks the row in %q", statements)
	return 0
}

// commits counts the statements that wait for the disk: COMMIT, and a write outside a transaction.
func commits(statements []string) (n int) {
	inside := false
	for _, s := range statements {
		inside = inside || s == "START TRANSACTION;"
		if s == "COMMIT;" || !inside && strings.HasPrefix(s, "UPDATE") {
			n++
		}
	}
	return n
}

// countLock counts the round trips to Redis of a single buyer that is not the first one.
func countLock(t *testing.T, e *engine.Engine, entry lockstrategy.Entry) int {
	t.Helper()
	deps := onengine.Deps(e)
	var sent atomic.Int64
	counted := func(c redis.UniversalClient) redis.UniversalClient {
		o := *c.(*redis.Client).Options()
		client := redis.NewClient(&o)
		client.AddHook(countHook{&sent})
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
	deps.Redis = counted(deps.Redis)
	nodes := deps.Redlock
	deps.Redlock = nil
	for _, n := range nodes {
		deps.Redlock = append(deps.Redlock, counted(n))
	}
	if entry.Missing(deps) != "" {
		return 0 // SQL only, on a database that supports it
	}
	shop := entry.New(deps)
	if c, ok := shop.(io.Closer); ok {
		defer c.Close()
	}
	mustRestock(t, e, purchase.DefaultProduct, 2)
	for range 2 {
		sent.Store(0)
		if _, err := shop.Buy(t.Context(), purchase.Order{Product: purchase.DefaultProduct, Purchaser: "ann", Amount: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if nodesOf(entry) == sizing.AllAtOnce {
		return int(sent.Load()) / len(deps.Redlock)
	}
	return int(sent.Load())
}

// countHook counts commands and pipelines.
type countHook struct{ sent *atomic.Int64 }

func (h countHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (h countHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.sent.Add(1)
		return next(ctx, cmd)
	}
}

func (h countHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.sent.Add(1)
		return next(ctx, cmds)
	}
}

// TestPathParts: the numbers that `make generate` counts are possible. No part is greater than the
// whole, and a turn takes time only if a buyer makes another one wait.
func TestPathParts(t *testing.T) {
	for _, entry := range lockstrategy.All() {
		p := entry.Path
		if turn := p.TurnSQL > 0; turn != (p.Keeps != sizing.Nobody || p.Rounds > 0) {
			t.Errorf("%s: a turn of %d round trips keeps %d waiting", entry.Name, p.TurnSQL, p.Keeps)
		}
		if p.TurnSQL > p.SQL || p.TurnLock > p.Lock || p.RowSQL >= p.SQL || p.TurnCommits > p.TurnSQL {
			t.Errorf("%s: a part is greater than the whole: %+v", entry.Name, p)
		}
	}
}
