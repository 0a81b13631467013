//go:build bench

package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/load/measure"
)

// BenchmarkSlowCommit measures the sales of one product with a COMMIT that takes 5 ms longer, as a
// ratio to the same without the delay. It is in the server's fsync, before which InnoDB has released
// the row. Target: 80 % for bucketed and coalesced.
func BenchmarkSlowCommit(b *testing.B) {
	for _, clients := range []int{64, 256} {
		b.Run(fmt.Sprintf("%d-clients", clients), func(b *testing.B) {
			stock := benchEngine(b)
			slowStock := slowDiskEngine(b)
			compareCommits(b, clients, stock, benchServe(b, stock), slowStock, benchServe(b, slowStock))
		})
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
			URLs: []string{url}, Strategy: strategy, Product: "apple", Buyers: clients, WarmUp: benchTime / 4, Duration: benchTime,
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
	b.Logf("%d clients, medians of %d rounds", clients, benchRounds)
	for _, name := range strategies {
		share := 100 * ratio(with[name], without[name])
		b.Logf("%-12s %6.0f/s, without the delay %6.0f/s, %5.1f %%", name, median(slices.Clone(with[name])), median(slices.Clone(without[name])), share)
		b.ReportMetric(share, "%-"+name)
	}
	b.ReportMetric(0, "ns/op")
}

// slowDiskEngine starts servers with a slow disk.
func slowDiskEngine(b *testing.B) *engine.Engine {
	b.Helper()
	shim := filepath.Join(b.TempDir(), "slow_disk.so")
	if said, err := exec.Command("cc", "-shared", "-fPIC", "-O2", "-o", shim, "testdata/slow_disk.c", "-ldl").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s; apt-get install gcc", err, said)
	}
	b.Setenv("LD_PRELOAD", shim)
	e := benchEngine(b)
	if err := os.Unsetenv("LD_PRELOAD"); err != nil { // the servers have it already
		b.Fatal(err)
	}
	return e
}
