//go:build bench

package bench

import (
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/load/measure"
)

// noOp is a route without work of its own, so it shows the cost of every route.
const noOp = "/healthz"

// BenchmarkHotRow measures the sales of one product over HTTP for each strategy in turn, as a ratio
// to the naive handler and to a route that does nothing. Targets for the fastest strategy: 8 times
// naive with 64 clients; 12 times naive and half of the route with 256 clients.
//
// The processor time of an answer, in shop, servers and clients, does not depend on other users of
// the machine. The rates do: a strategy with few running threads loses more to them.
func BenchmarkHotRow(b *testing.B) {
	const naive = "for-update"
	for _, clients := range []int{64, 256} {
		b.Run(fmt.Sprintf("%d-clients", clients), func(b *testing.B) {
			e := benchEngine(b)
			base := benchServe(b, e)
			rates, costs := map[string][]float64{}, map[string][]float64{}
			ask := func(name, route string) {
				perSecond, cost := answers(b, base+route, clients)
				rates[name], costs[name] = append(rates[name], perSecond), append(costs[name], cost)
			}
			rows := []string{noOp, naive, "conditional", "redis-lua", "coalesced"}
			for range benchRounds {
				ask(noOp, noOp)
				for _, name := range rows[1:] {
					benchStock(b, e)
					ask(name, "/product/buy?purchaser=ann&lock="+name)
					mustBeKept(b, e, rates[name][len(rates[name])-1])
				}
			}
			b.Logf("%d clients, %s, medians of %d rounds", clients, client(), benchRounds)
			for _, name := range rows {
				b.Logf("%-12s %7.0f/s %5.1f x %s %5.1f %% of %s; processor time %6.3f ms, %5.1f x less, %5.1f %%", name,
					median(slices.Clone(rates[name])), ratio(rates[name], rates[naive]), naive, 100*ratio(rates[name], rates[noOp]), noOp,
					median(slices.Clone(costs[name])), ratio(costs[naive], costs[name]), 100*ratio(costs[noOp], costs[name]))
				b.ReportMetric(median(slices.Clone(rates[name])), strings.TrimPrefix(name, "/")+"/s")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// ratio returns the median of the ratios of the rounds.
func ratio(of, to []float64) float64 {
	all := make([]float64, len(of))
	for i := range of {
		all[i] = of[i] / to[i]
	}
	return median(all)
}

// mustBeKept fails unless stock and records agree with the answers and survive a crash.
func mustBeKept(b *testing.B, e *engine.Engine, perSecond float64) {
	b.Helper()
	books, err := audit.Read(b.Context(), e.DB, "apple")
	if err != nil || books.Drift != 0 || float64(books.Records) < 0.9*perSecond*benchTime.Seconds() {
		b.Errorf("%.0f a second, books %+v, %v", perSecond, books, err)
	}
}

// wrkRate and wrkRefused match lines of wrk's output.
var (
	wrkRate    = regexp.MustCompile(`Requests/sec:\s+([\d.]+)`)
	wrkRefused = regexp.MustCompile(`Non-2xx or 3xx responses: \d+|Socket errors: .*`)
)

// client returns the load generator: wrk if it is installed, since it leaves the processors to the
// shop.
func client() string {
	if _, err := exec.LookPath("wrk"); err != nil {
		return "net/http"
	}
	return "wrk"
}

// answers returns the answers per second and the processor time of an answer in milliseconds. Each
// client sends its next request after an answer. A status other than 200 fails the benchmark.
func answers(b *testing.B, url string, clients int) (perSecond, cost float64) {
	b.Helper()
	before := used(b)
	start := time.Now()
	var wrk float64
	if client() == "wrk" {
		perSecond, wrk = answersByWrk(b, url, clients)
	} else {
		perSecond = answersByGo(b, url, clients)
	}
	return perSecond, (used(b) - before + wrk) / (perSecond * time.Since(start).Seconds())
}

// used returns the processor time of this process and its servers so far, in milliseconds.
func used(b *testing.B) float64 {
	b.Helper()
	ms, err := measure.CPUTime()
	if err != nil {
		b.Fatal(err)
	}
	return ms
}

func answersByWrk(b *testing.B, url string, clients int) (perSecond, cpuMS float64) {
	b.Helper()
	wrk := exec.CommandContext(b.Context(), "wrk", "-t2", "--timeout", "30s", fmt.Sprintf("-c%d", clients), fmt.Sprintf("-d%ds", int(benchTime.Seconds())), url)
	out, err := wrk.CombinedOutput()
	if refused := wrkRefused.Find(out); err != nil || refused != nil {
		b.Fatalf("%s: %v: %s", url, err, refused)
	}
	found := wrkRate.FindSubmatch(out)
	if found == nil {
		b.Fatalf("wrk says no rate: %s", out)
	}
	if perSecond, err = strconv.ParseFloat(string(found[1]), 64); err != nil {
		b.Fatal(err)
	}
	return perSecond, float64((wrk.ProcessState.UserTime() + wrk.ProcessState.SystemTime()).Milliseconds())
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
