package main

import (
	"context"
	"database/sql/driver"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/sqlconn"
	"github.com/oversell/oversell/internal/load/sizing/measure"
)

// commitDelay is added to each COMMIT.
const commitDelay = 5 * time.Millisecond

// BenchmarkSlowCommit measures the sales of one product with commitDelay, as a ratio to the same
// without it. In "held" the delay is before the COMMIT is sent, under the transaction's locks, as
// with a synchronous replica. In "disk" it is in the server's fsync, before which InnoDB has
// released the row. Target: 80 % for bucketed and coalesced. The naive handler sells one unit for
// each commit while the row is held.
func BenchmarkSlowCommit(b *testing.B) {
	for _, model := range []struct {
		name string
		shop func(*testing.B) (*engine.Engine, string)
	}{
		{"held", func(b *testing.B) (*engine.Engine, string) { return commitShop(b, commitDelay) }},
		{"disk", slowDiskShop},
	} {
		for _, clients := range []int{64, 256} {
			b.Run(fmt.Sprintf("%s/%d-clients", model.name, clients), func(b *testing.B) {
				stock, fast := commitShop(b, 0)
				slowStock, slow := model.shop(b)
				compareCommits(b, clients, stock, fast, slowStock, slow)
			})
		}
	}
}

// compareCommits measures the two shops in turn.
func compareCommits(b *testing.B, clients int, stock *engine.Engine, fast string, slowStock *engine.Engine, slow string) {
	b.Helper()
	strategies := []string{"for-update", "bucketed", "coalesced"}
	with, without := map[string][]float64{}, map[string][]float64{}
	sold := func(e *engine.Engine, url, strategy string) float64 {
		benchStock(b, e)
		round, err := measure.Load{ // buyers have different names, which bucketed distributes among its rows
			URLs: []string{url}, Strategy: strategy, Products: []string{"apple"}, Buyers: clients, WarmUp: benchTime / 4, Duration: benchTime,
		}.Run(b.Context())
		if err != nil || round.FirstNo != "" {
			b.Errorf("%s: %v, %s", strategy, err, round.FirstNo)
		}
		mustBeKept(b, e, round.PerSecond)
		return round.PerSecond
	}
	for range benchRounds {
		for _, name := range strategies {
			without[name] = append(without[name], sold(stock, fast, name))
			with[name] = append(with[name], sold(slowStock, slow, name))
		}
	}
	b.Logf("%d clients, medians of %d rounds, %s longer", clients, benchRounds, commitDelay)
	for _, name := range strategies {
		share := 100 * ratio(with[name], without[name])
		b.Logf("%-12s %6.0f/s, without the delay %6.0f/s, %5.1f %%", name, median(slices.Clone(with[name])), median(slices.Clone(without[name])), share)
		b.ReportMetric(share, "%-"+name)
	}
	b.ReportMetric(0, "ns/op")
}

// slowDiskShop returns a shop whose servers have a slow disk.
func slowDiskShop(b *testing.B) (*engine.Engine, string) {
	b.Helper()
	shim := filepath.Join(b.TempDir(), "slow_disk.so")
	if said, err := exec.Command("cc", "-shared", "-fPIC", "-O2", "-o", shim, "testdata/slow_disk.c", "-ldl").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s; apt-get install gcc", err, said)
	}
	b.Setenv("LD_PRELOAD", shim)
	e, base := commitShop(b, 0)
	if err := os.Unsetenv("LD_PRELOAD"); err != nil { // the servers have it already
		b.Fatal(err)
	}
	return e, base
}

// commitShop returns a shop with its own servers. Each commit starts after the delay.
func commitShop(b *testing.B, delay time.Duration) (_ *engine.Engine, base string) {
	b.Helper()
	e, err := engine.Open(b.Context(), engine.Config{
		Name: engine.Local, Wait: 5 * time.Second, Conns: benchBuyers,
		WrapDB: func(c driver.Connector) driver.Connector { return slowConnector{c, delay} },
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = e.Close() })
	return e, benchServe(b, e)
}

type slowConnector struct {
	driver.Connector
	delay time.Duration
}

func (c slowConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return slowConn{conn.(sqlconn.Conn), c.delay}, nil
}

type slowConn struct {
	sqlconn.Conn
	delay time.Duration
}

func (c slowConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.BeginTx(ctx, o)
	if err != nil {
		return nil, err
	}
	return slowTx{tx, c.delay}, nil
}

type slowTx struct {
	driver.Tx
	delay time.Duration
}

func (t slowTx) Commit() error {
	time.Sleep(t.delay)
	return t.Tx.Commit()
}
