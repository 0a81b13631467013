//go:build bench

package bench

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/oversell/oversell/internal/load/measure"
)

// BenchmarkProcesses measures the sales of one product through several processes of the shop at one
// database, as a ratio to one process. Every answer must be sold: groups of two processes meet at
// the row, and a deadlock would be an error. Target: 8 processes keep 95 %.
func BenchmarkProcesses(b *testing.B) {
	const clients = 256
	numbers := []int{1, 2, 4, 8}
	binary := builtForBench(b)
	for _, strategy := range []string{"for-update", "bucketed", "coalesced"} {
		b.Run(strategy, func(b *testing.B) {
			e := benchEngine(b)
			shops := map[int][]string{}
			for _, n := range numbers {
				for range n {
					args := append(serveArgs(e), "--admission", "off", "--db-conns", strconv.Itoa(benchBuyers/n))
					addr, _, stop := benchProgram(b, binary, args...)
					b.Cleanup(stop)
					shops[n] = append(shops[n], "http://"+addr)
				}
			}
			sold := map[int][]float64{}
			for range benchRounds {
				for _, n := range numbers {
					benchStock(b, e)
					round, err := measure.Load{
						URLs: shops[n], Strategy: strategy, Product: "apple", Buyers: clients, WarmUp: benchTime / 4, Duration: benchTime,
					}.Run(b.Context())
					if err != nil {
						b.Fatal(err)
					}
					if round.FirstNo != "" {
						b.Errorf("%d processes: %.1f %% were sold nothing: %s", n, 100*round.Refused, round.FirstNo)
					}
					mustBeKept(b, e, round.PerSecond)
					sold[n] = append(sold[n], round.PerSecond)
				}
			}
			for _, n := range numbers {
				share := 100 * ratio(sold[n], sold[numbers[0]])
				b.Logf("%d processes: %6.0f/s, %5.1f %% of one", n, median(slices.Clone(sold[n])), share)
				b.ReportMetric(share, fmt.Sprintf("%%-%d", n))
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}
