package lockstrategy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/load/quantile"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
)

const (
	benchRounds = 5
	benchRound  = time.Second
	benchBuyers = 64
)

// BenchmarkScript adds commands to the script of `redis-lua` and reports the sales per second. The rounds
// alternate, so that a slow phase of the machine affects all sizes.
func BenchmarkScript(b *testing.B) {
	e := benchEngine(b, "redis")
	sizes := []int{0, 10, 100, 1000}
	sales := map[int][]float64{}
	for round := range b.N*benchRounds + 1 {
		for i := range sizes {
			n := sizes[(i+round)%len(sizes)]
			s := NewRedisLua(benchDeps(e))
			s.admit = redis.NewScript(fmt.Sprintf("for i = 1, %d do redis.call('GET', KEYS[1]) end\n", n) + admitLua)
			waits := sell(b, e, redisLua, s)
			if round > 0 { // the first round warms up
				sales[n] = append(sales[n], float64(len(waits))/benchRound.Seconds())
			}
		}
	}
	for _, n := range sizes {
		b.ReportMetric(median(sales[n]), fmt.Sprintf("sales/s_with_%d_more", n))
	}
}

// BenchmarkWaiting compares the queue of ZooKeeper with locks that eight waiters poll, by sales per second, by
// requests to the lock's server for each sale, and by the wait for the lock. Eight strategies stand for eight processes of eight buyers.
func BenchmarkWaiting(b *testing.B) {
	e := benchEngine(b, "redis", "zookeeper")
	polling := func(poll time.Duration) func(Deps) purchase.Strategy {
		return func(d Deps) purchase.Strategy { d.Settings.Poll = poll; return newRedis(d) }
	}
	rows := []struct {
		name     string
		open     func(Deps) purchase.Strategy
		requests func(testing.TB, *engine.Engine) float64
	}{
		{"zookeeper", newZookeeper, zookeeperRequests},
		{"redis_poll_2ms", polling(2 * time.Millisecond), redisRequests},
		{"redis_poll_100ms", polling(100 * time.Millisecond), redisRequests},
	}
	sales, requests, p99 := map[string][]float64{}, map[string][]float64{}, map[string][]float64{}
	for round := range b.N*benchRounds + 1 {
		for i := range rows {
			row := rows[(i+round)%len(rows)]
			var processes []purchase.Strategy
			for range 8 {
				processes = append(processes, row.open(benchDeps(e)))
			}
			before := row.requests(b, e)
			waits := sell(b, e, row.name, processes...)
			sold := float64(len(waits))
			if round == 0 { // the first round warms up
				continue
			}
			sales[row.name] = append(sales[row.name], sold/benchRound.Seconds())
			requests[row.name] = append(requests[row.name], (row.requests(b, e)-before)/max(sold, 1))
			p99[row.name] = append(p99[row.name], float64(quantile.Of(waits, 0.99).Milliseconds()))
		}
	}
	for _, row := range rows {
		b.ReportMetric(median(sales[row.name]), row.name+"_sales/s")
		b.ReportMetric(median(requests[row.name]), row.name+"_requests/sale")
		b.ReportMetric(median(p99[row.name]), row.name+"_p99_ms")
	}
}

// sell lets the buyers, divided among the processes, buy apples for a round. It returns the sorted waits of the sales.
func sell(b *testing.B, e *engine.Engine, name string, processes ...purchase.Strategy) []time.Duration {
	b.Helper()
	ctx := context.Background()
	for _, p := range processes {
		if r, ok := p.(purchase.Resetter); ok {
			require.NoError(b, r.Reset(ctx, "apple"))
		}
	}
	require.NoError(b, e.Admin.Exec("UPDATE product SET amount = 900000000, stocked = 900000000").Error)
	var mu sync.Mutex
	var waits []time.Duration
	var buyers sync.WaitGroup
	end := time.Now().Add(benchRound)
	for i := range benchBuyers {
		buyers.Go(func() {
			for n := 0; time.Now().Before(end); n++ {
				receipt, err := processes[i%len(processes)].Buy(ctx, apple(fmt.Sprintf("%s-%d-%d", name, i, n), 1))
				switch {
				case err == nil:
					mu.Lock()
					waits = append(waits, receipt.Waited)
					mu.Unlock()
				case !errors.Is(err, purchase.ErrBusy):
					b.Errorf("%s: %v", name, err)
					return
				}
			}
		})
	}
	buyers.Wait()
	for _, p := range processes {
		if c, ok := p.(io.Closer); ok {
			expect.NoError(b, c.Close())
		}
	}
	slices.Sort(waits)
	return waits
}

func benchEngine(b *testing.B, needs ...string) *engine.Engine {
	b.Helper()
	e, err := engine.Open(b.Context(), engine.Config{Name: engine.Local, Needs: needs, Wait: longWait, Conns: 64})
	require.NoError(b, err)
	b.Cleanup(func() {
		expect.NoError(b, e.Close())
	})
	return e
}

func benchDeps(e *engine.Engine) Deps {
	settings := DefaultSettings()
	settings.Wait = longWait
	return Deps{DB: e.DB, Redis: e.Redis, Zookeeper: e.Zookeeper, Settings: settings, Now: time.Now}
}

// redisRequests returns the number of scripts that Redis has executed: the lock of `redis` sends only
// scripts.
func redisRequests(b testing.TB, e *engine.Engine) float64 {
	b.Helper()
	info, err := e.Redis.Info(context.Background(), "commandstats").Result()
	require.NoError(b, err)
	if !strings.Contains(info, "cmdstat_evalsha:") {
		return 0
	}
	return number(b, info, `cmdstat_evalsha:calls=(\d+)`)
}

func zookeeperRequests(b testing.TB, e *engine.Engine) float64 {
	b.Helper()
	conn, err := net.Dial("tcp", e.URLs.Zookeeper[0])
	require.NoError(b, err)
	defer conn.Close()
	require.NoError(b, expect.ErrorOf(io.WriteString(conn, "srvr")))
	status, err := io.ReadAll(conn)
	require.NoError(b, err)
	return number(b, string(status), `Received: (\d+)`)
}

func number(b testing.TB, text, pattern string) float64 {
	b.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if found == nil {
		b.Fatalf("no %s in %s", pattern, strings.TrimSpace(text))
	}
	n, err := strconv.ParseFloat(found[1], 64)
	require.NoError(b, err)
	return n
}

func median(values []float64) float64 { return quantile.Of(slices.Sorted(slices.Values(values)), 0.5) }
