package lockstrategy_test

import (
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
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/load/sizing"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/purchase"
)

// TestPaths: the statements of a Path are those that MariaDB has received
// (testdata/sql), and its commands are those that a buyer sends to Redis.
func TestPaths(t *testing.T) {
	t.Parallel()
	e := enginetest.Embedded(t)
	for _, entry := range lockstrategy.All() {
		t.Run(entry.Name, func(t *testing.T) {
			want := entry.Path
			got := want
			got.SQL, got.RowSQL = countSQL(t, entry)
			// Nobody counts for ZooKeeper and etcd, and an order is moved after its buyer was answered.
			if want.Nodes != sizing.OneLeader && want.Batch == 0 {
				got.Lock = countLock(t, e, entry)
			}
			if got != want {
				t.Errorf("counted %+v, the entry has %+v", got, want)
			}
			if turn := want.TurnSQL > 0; turn != (want.Keeps != sizing.Nobody || want.Rounds > 0) {
				t.Errorf("a turn of %d round trips keeps %d waiting", want.TurnSQL, want.Keeps)
			}
			if want.TurnSQL > want.SQL || want.TurnLock > want.Lock || want.RowSQL >= want.SQL || want.TurnCommits > want.TurnSQL {
				t.Errorf("a part is greater than the whole: %+v", want)
			}
		})
	}
}

// countSQL reads what MariaDB received from one sale, and how many round trips lie between
// the statement that locks the row in the transaction and COMMIT.
func countSQL(t *testing.T, entry lockstrategy.Entry) (all, row int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "sql", entry.Name+".sql"))
	if err != nil {
		t.Fatal(err)
	}
	statements := strings.Split(strings.TrimSpace(string(text)), "\n")
	if entry.WritesLater || entry.AdmitsFirst { // the first buyer of a product copies its stock
		statements = statements[1:]
	}
	if entry.Path.Rows > 0 { // or divides it
		buys := strings.SplitAfter(string(text), "COMMIT;\n")
		statements = strings.Split(strings.TrimSpace(buys[len(buys)-2]), "\n")
	}
	begin, commit := slices.Index(statements, "START TRANSACTION;"), slices.Index(statements, "COMMIT;")
	for n, s := range statements[begin:commit] {
		// SERIALIZABLE makes each read one that locks.
		reads := strings.Contains(s, "FOR UPDATE") || strings.Contains(statements[0], "SERIALIZABLE") && strings.HasPrefix(s, "SELECT")
		if strings.HasPrefix(s, "UPDATE product") || reads {
			return len(statements), commit - begin - n
		}
	}
	t.Fatalf("nothing locks the row in %q", statements)
	return 0, 0
}

// countLock counts the round trips to Redis of a lone buyer, who is not the first one.
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
		return entry.Path.Lock // SQL alone, on a database that has it
	}
	shop := entry.New(deps)
	if c, ok := shop.(io.Closer); ok {
		defer c.Close()
	}
	for range 2 {
		sent.Store(0)
		if _, err := shop.Buy(t.Context(), purchase.Order{Product: "apple", Purchaser: "ann", Amount: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if entry.Path.Nodes == sizing.AllAtOnce {
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
