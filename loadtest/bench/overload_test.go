//go:build bench

package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/load/quantile"
)

const (
	overloadRounds = 5
	overloadSettle = 2 * time.Second // a burst is admitted for a tenth of the wait and has been served by then
	overloadTime   = 3 * time.Second // the measured time
)

// load is the result of one round.
type load struct {
	goodput, refused float64 // per second
	p99              float64 // of the buyers with a sale, in ms
	peak             float64 // maximum resident memory of the shop, in MB
}

// BenchmarkOverload measures the sales per second of one product with 64, 640 and 5,000 clients that
// come back at once, without admission, with it, and with a plain limit of buyers in the shop. Targets with the admission: 640 clients get
// 90 % of the best rate, 5,000 get 75 %. The p99 of 5,000 is at most five times that of 64, and the
// memory at most 200 MB.
func BenchmarkOverload(b *testing.B) {
	clients := []int{64, 640, 5_000}
	admissions := []string{"off", "adaptive", "256"} // a number: off, with this --max-inflight
	e, binary := benchEngine(b), builtForBench(b)
	loads := map[string][][]load{} // by admission, number of clients, and round
	for _, how := range admissions {
		loads[how] = make([][]load, len(clients))
	}
	for range overloadRounds {
		for i, n := range clients {
			for _, how := range admissions {
				loads[how][i] = append(loads[how][i], overloadOnce(b, e, binary, how, n))
			}
		}
	}
	peak := 0.0
	for _, how := range admissions {
		for i := range clients {
			peak = max(peak, medianOf(loads[how][i], func(l load) float64 { return l.goodput }))
		}
	}
	for _, how := range admissions {
		few := medianOf(loads[how][0], func(l load) float64 { return l.p99 })
		for i, n := range clients {
			of := func(what func(l load) float64) float64 { return medianOf(loads[how][i], what) }
			goodput, p99 := of(func(l load) float64 { return l.goodput }), of(func(l load) float64 { return l.p99 })
			b.Logf("%-8s %5d clients: %6.0f sold/s, %3.0f %% of the most; %6.0f refused/s; p99 %6.0f ms, %5.1f x that of %d; %4.0f MB",
				how, n, goodput, 100*goodput/peak, of(func(l load) float64 { return l.refused }), p99, p99/few, clients[0], of(func(l load) float64 { return l.peak }))
			b.ReportMetric(100*goodput/peak, fmt.Sprintf("%%ofpeak-%s-%d", how, n))
		}
	}
	b.ReportMetric(0, "ns/op")
}

func medianOf(loads []load, what func(l load) float64) float64 {
	values := make([]float64, len(loads))
	for i, l := range loads {
		values[i] = what(l)
	}
	return median(values)
}

// overloadOnce runs a shop of its own, so that earlier rounds do not affect its memory.
func overloadOnce(b *testing.B, e *engine.Engine, binary, how string, clients int) (l load) {
	b.Helper()
	benchStock(b, e)
	var limit []string
	if _, err := strconv.Atoi(how); err == nil {
		limit, how = []string{"--max-inflight", how}, "off"
	}
	addr, pid, stop := benchProgram(b, binary, append(append(serveArgs(e), limit...), "--admission", how)...)
	defer stop()
	request := []byte("GET /product/buy?purchaser=ann&lock=for-update HTTP/1.1\r\nHost: " + addr + "\r\n\r\n")
	var (
		mu                 sync.Mutex
		took               []float64
		sold, refused, all int
		wrong              error // the first error
		crowd              sync.WaitGroup
	)
	from := time.Now().Add(overloadSettle)
	until := from.Add(overloadTime)
	for range clients {
		crowd.Go(func() {
			c, err := dialRaw(addr) // here, since a client that is silent for five seconds is disconnected
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				wrong = cmp.Or(wrong, err)
				return
			}
			defer c.conn.Close()
			var mine []float64
			mySold, myRefused, myAll := 0, 0, 0
			for start := time.Now(); start.Before(until); start = time.Now() {
				status, err := c.roundTrip(request)
				end := time.Now()
				counts := end.After(from) && end.Before(until)
				switch {
				case err != nil || status != 200 && status != 503:
					mu.Lock()
					defer mu.Unlock()
					wrong = cmp.Or(wrong, err, fmt.Errorf("status %d", status))
					return
				case status == 200:
					myAll++
					if counts {
						mySold++
						mine = append(mine, float64(end.Sub(start).Microseconds())/1000)
					}
				case counts:
					myRefused++
				}
			}
			mu.Lock()
			defer mu.Unlock()
			took, sold, refused, all = append(took, mine...), sold+mySold, refused+myRefused, all+myAll
		})
	}
	crowd.Wait()
	if books, err := audit.Read(b.Context(), e.DB, "apple"); err != nil || wrong != nil || books.Drift != 0 || books.Records != int64(all) {
		b.Errorf("%d clients, admission %s: %d were sold to; books %+v, %v, %v", clients, how, all, books, err, wrong)
	}
	slices.Sort(took)
	seconds := overloadTime.Seconds()
	return load{float64(sold) / seconds, float64(refused) / seconds, quantile.Of(took, 0.99), memory(b, pid, "VmHWM")}
}
