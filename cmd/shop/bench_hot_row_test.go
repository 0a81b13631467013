package main

import (
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/audit"
	"github.com/oversell/oversell/internal/engine"
)

// noOp is the route that does nothing, with all that stands around a route.
const noOp = "/healthz"

// BenchmarkHotRow is what one product sells over HTTP, strategy by strategy in turn, as a
// ratio to the naive handler and to a route that does nothing. Targets for the fastest of
// them: 8 times naive with 64 clients, 12 times and half of the route with 256.
func BenchmarkHotRow(b *testing.B) {
	const naive = "for-update"
	strategies := []string{naive, "conditional", "redis-lua", "coalesced"}
	for _, clients := range []int{64, 256} {
		b.Run(fmt.Sprintf("%d-clients", clients), func(b *testing.B) {
			e := benchEngine(b)
			base := benchServe(b, e)
			perSecond, toNaive, toNoOp := map[string][]float64{}, map[string][]float64{}, map[string][]float64{}
			for range benchRounds {
				nothing := answers(b, base+noOp, clients)
				perSecond[noOp] = append(perSecond[noOp], nothing)
				first := 0.0
				for _, name := range strategies {
					benchStock(b, e)
					sales := answers(b, base+"/product/buy?purchaser=ann&lock="+name, clients)
					mustBeKept(b, e, sales)
					if name == naive {
						first = sales
					}
					perSecond[name] = append(perSecond[name], sales)
					toNaive[name], toNoOp[name] = append(toNaive[name], sales/first), append(toNoOp[name], 100*sales/nothing)
				}
			}
			b.Logf("%d clients, %s, median of %d rounds", clients, client(), benchRounds)
			b.Logf("%-12s %8.0f/s", noOp, median(perSecond[noOp]))
			for _, name := range strategies {
				b.Logf("%-12s %8.0f/s  %5.1f x %s  %5.1f %% of %s", name, median(perSecond[name]), median(toNaive[name]), naive, median(toNoOp[name]), noOp)
				b.ReportMetric(median(perSecond[name]), name+"/s")
			}
			b.ReportMetric(median(toNaive["coalesced"]), "x-naive")
			b.ReportMetric(median(toNoOp["coalesced"]), "%of-no-op")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// mustBeKept fails unless what was answered is in the books: durable, and nothing sold twice.
func mustBeKept(b *testing.B, e *engine.Engine, perSecond float64) {
	b.Helper()
	books, err := audit.Read(b.Context(), e.DB, "apple")
	if err != nil || books.Drift != 0 || float64(books.Records) < 0.9*perSecond*benchTime.Seconds() {
		b.Errorf("%.0f a second, books %+v, %v", perSecond, books, err)
	}
}

// wrkRate and wrkRefused are lines of what wrk prints.
var (
	wrkRate    = regexp.MustCompile(`Requests/sec:\s+([\d.]+)`)
	wrkRefused = regexp.MustCompile(`Non-2xx or 3xx responses: \d+|Socket errors: .*`)
)

// client is what asks: wrk, which leaves the processors to the shop, where it is installed.
func client() string {
	if _, err := exec.LookPath("wrk"); err != nil {
		return "net/http"
	}
	return "wrk"
}

// answers is how many answers a second so many clients get, each of whom asks again when it
// is answered. Any but 200 fails.
func answers(b *testing.B, url string, clients int) float64 {
	b.Helper()
	if client() == "net/http" {
		return answersByGo(b, url, clients)
	}
	out, err := exec.CommandContext(b.Context(), "wrk", "-t2", "--timeout", "30s", fmt.Sprintf("-c%d", clients), fmt.Sprintf("-d%ds", int(benchTime.Seconds())), url).CombinedOutput()
	if refused := wrkRefused.Find(out); err != nil || refused != nil {
		b.Fatalf("%s: %v: %s", url, err, refused)
	}
	found := wrkRate.FindSubmatch(out)
	if found == nil {
		b.Fatalf("wrk says no rate: %s", out)
	}
	perSecond, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		b.Fatal(err)
	}
	return perSecond
}

func answersByGo(b *testing.B, url string, clients int) float64 {
	b.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConns: clients, MaxIdleConnsPerHost: clients}}
	defer client.CloseIdleConnections()
	var all sync.WaitGroup
	var done atomic.Int64
	start := time.Now()
	for range clients {
		all.Go(func() {
			for time.Since(start) < benchTime {
				if err := buyOnce(client, url); err != nil {
					b.Error(err)
					return
				}
				done.Add(1)
			}
		})
	}
	all.Wait()
	return float64(done.Load()) / time.Since(start).Seconds()
}
