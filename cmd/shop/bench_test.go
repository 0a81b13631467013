package main

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bsm/redislock"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/load/quantile"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/product/stock"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/web"
)

const (
	benchBuyers = 64 // number of goroutines, HTTP clients, and database connections
	benchRounds = 5
	benchTime   = 2 * time.Second // duration of a round
)

// benchEngine starts real servers for one benchmark.
func benchEngine(b *testing.B) *engine.Engine {
	b.Helper()
	e, err := engine.Open(b.Context(), engine.Config{Name: engine.Local, Wait: 5 * time.Second, Conns: benchBuyers})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = e.Close() })
	return e
}

func benchStock(b *testing.B, e *engine.Engine) {
	b.Helper()
	if err := stock.ClearAll(e.DB); err != nil {
		b.Fatal(err)
	}
	for _, statement := range []string{"TRUNCATE TABLE purchase_history", "UPDATE product SET amount = 900000000, stocked = 900000000, fence = 0"} {
		if err := e.DB.Exec(statement).Error; err != nil {
			b.Fatal(err)
		}
	}
}

// rate calls once repeatedly on benchBuyers goroutines for benchTime and returns the successful
// calls per second.
func rate(b *testing.B, once func(n int64) error) float64 {
	b.Helper()
	var (
		all  sync.WaitGroup
		done atomic.Int64
		stop = time.Now().Add(benchTime)
	)
	start := time.Now()
	for range benchBuyers {
		all.Go(func() {
			for time.Now().Before(stop) {
				if err := once(done.Load()); err != nil {
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

func median(values []float64) float64 {
	slices.Sort(values)
	return quantile.Of(values, 0.5)
}

// BenchmarkOverHTTP compares a sale over HTTP with the same SQL in a plain database/sql loop on the
// same pool, round by round. Target: 70 %.
func BenchmarkOverHTTP(b *testing.B) {
	for name, bare := range map[string]func(context.Context, *sql.Tx) error{"conditional": bareConditional, "for-update": bareForUpdate} {
		b.Run(name, func(b *testing.B) {
			e := benchEngine(b)
			db, err := e.DB.DB()
			if err != nil {
				b.Fatal(err)
			}
			base := benchServe(b, e)
			client := &http.Client{Transport: &http.Transport{MaxIdleConns: benchBuyers, MaxIdleConnsPerHost: benchBuyers}}
			var bares, https, ratios []float64
			for range benchRounds {
				benchStock(b, e)
				direct := rate(b, func(int64) error { return inBareTx(b.Context(), db, bare) })
				benchStock(b, e)
				overHTTP := rate(b, func(int64) error { return buyOnce(client, base+"/product/buy?purchaser=ann&lock="+name) })
				bares, https, ratios = append(bares, direct), append(https, overHTTP), append(ratios, 100*overHTTP/direct)
			}
			b.ReportMetric(median(bares), "bare/s")
			b.ReportMetric(median(https), "http/s")
			b.ReportMetric(median(ratios), "%ofbare")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func benchServe(b *testing.B, e *engine.Engine) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	flags := web.Config{Settings: lockstrategy.DefaultSettings(), MaxInflight: 2000}
	server := web.New(e, flags, slog.New(slog.DiscardHandler)).Server(l.Addr(), "")
	go func() { _ = server.Serve(l) }()
	b.Cleanup(func() { _ = server.Close() })
	return "http://" + l.Addr().String()
}

func buyOnce(client *http.Client, url string) error {
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s", response.Status)
	}
	return nil
}

func inBareTx(ctx context.Context, db *sql.DB, statements func(context.Context, *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := statements(ctx, tx); err != nil {
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}

// The statements are those of internal/lockstrategy/testdata/sql.
const (
	selectProduct = "SELECT * FROM `product` WHERE name = ? LIMIT 1"
	insertRecord  = "INSERT INTO `purchase_history` (`product_name`,`purchaser`,`purchase_time`,`amount`,`strategy`,`idempotency_key`,`left_after`,`waited_ms`) VALUES (?,?,?,?,?,NULL,?,?)"
)

func bareConditional(ctx context.Context, tx *sql.Tx) error {
	if _, err := tx.ExecContext(ctx, "UPDATE product SET amount = amount - ? WHERE name = ? AND amount >= ?", 1, "apple", 1); err != nil {
		return err
	}
	if _, _, err := scanProduct(tx.QueryRowContext(ctx, selectProduct, "apple")); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, insertRecord, "apple", "ann", time.Now(), 1, "conditional", 1, 0)
	return err
}

func bareForUpdate(ctx context.Context, tx *sql.Tx) error {
	id, amount, err := scanProduct(tx.QueryRowContext(ctx, selectProduct+" FOR UPDATE", "apple"))
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE product SET amount = ? WHERE id = ?", amount-1, id); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, insertRecord, "apple", "ann", time.Now(), 1, "for-update", 1, 0)
	return err
}

func scanProduct(row *sql.Row) (id, amount int64, err error) {
	var name, lastEntry string
	var stocked, version, fence int64
	err = row.Scan(&id, &name, &amount, &stocked, &version, &fence, &lastEntry)
	return id, amount, err
}

// BenchmarkStrategy measures the sales per second of each strategy, called directly by 64 buyers of
// one product on real servers.
func BenchmarkStrategy(b *testing.B) {
	e := benchEngine(b)
	for _, entry := range lockstrategy.All() {
		b.Run(entry.Name, func(b *testing.B) {
			benchStock(b, e)
			shop := entry.New(onengine.Deps(e))
			if c, ok := shop.(io.Closer); ok {
				defer c.Close()
			}
			var busy atomic.Int64
			sales := rate(b, func(int64) error {
				_, err := shop.Buy(b.Context(), purchase.Order{Product: "apple", Purchaser: "ann", Amount: 1})
				if purchase.OutcomeOf(err) == purchase.Busy {
					busy.Add(1)
					return nil
				}
				return err
			})
			b.ReportMetric(sales-float64(busy.Load())/benchTime.Seconds(), "sales/s")
			b.ReportMetric(float64(busy.Load()), "busy")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkHandOver compares two wait policies of a polled lock: 64 waiters of one lock in Redis
// with an empty section, with the shop's queue and with bsm/redislock's back-off.
func BenchmarkHandOver(b *testing.B) {
	e := benchEngine(b)
	for _, backOff := range []time.Duration{100 * time.Millisecond, 10 * time.Millisecond, time.Millisecond} {
		b.Run("redislock-"+backOff.String(), func(b *testing.B) {
			locks := redislock.New(e.Redis)
			reportHandOvers(b, func(ctx context.Context) (func(context.Context) error, error) {
				lock, err := locks.Obtain(ctx, "bench", 10*time.Second, &redislock.Options{RetryStrategy: redislock.LinearBackoff(backOff)})
				if err != nil {
					return nil, err
				}
				return lock.Release, nil
			})
		})
	}
	b.Run("line", func(b *testing.B) {
		locker := lockstrategy.NewRedisLocker(lockstrategy.Deps{Redis: e.Redis, Settings: lockstrategy.DefaultSettings(), Now: time.Now})
		reportHandOvers(b, func(ctx context.Context) (func(context.Context) error, error) {
			lease, err := locker.Lock(ctx, "bench")
			if err != nil {
				return nil, err
			}
			return lease.Release, nil
		})
	})
}

func reportHandOvers(b *testing.B, lock func(context.Context) (func(context.Context) error, error)) {
	b.Helper()
	var mu sync.Mutex
	var waits []float64
	perSecond := rate(b, func(int64) error {
		start := time.Now()
		ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
		defer cancel()
		release, err := lock(ctx)
		if err != nil {
			return err
		}
		mu.Lock()
		waits = append(waits, float64(time.Since(start).Microseconds())/1000)
		mu.Unlock()
		return release(b.Context())
	})
	slices.Sort(waits)
	b.ReportMetric(perSecond, "handovers/s")
	b.ReportMetric(quantile.Of(waits, 0.99), "p99-wait-ms")
	b.ReportMetric(quantile.Of(waits, 1), "max-wait-ms")
	b.ReportMetric(0, "ns/op")
}

// builtForBench builds the program without the race detector.
func builtForBench(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), filepath.Base(os.Args[0])) // sizing/measure recognizes a shop by this name
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return path
}

// BenchmarkRushAll measures the first command of the README, once built. Target: 10 s. On a private
// PostgreSQL, including the start of all servers: 30 s.
func BenchmarkRushAll(b *testing.B) {
	shop := builtForBench(b)
	for _, flags := range [][]string{nil, {"--engine", "local", "--local-db", dialect.Postgres}} {
		b.Run(strings.Join(append([]string{"rush"}, flags...), " "), func(b *testing.B) {
			var seconds []float64
			for range benchRounds {
				start := time.Now()
				if out, err := exec.Command(shop, append([]string{"rush"}, flags...)...).CombinedOutput(); err != nil {
					b.Fatalf("%v: %s", err, out)
				}
				seconds = append(seconds, time.Since(start).Seconds())
			}
			b.ReportMetric(median(seconds), "s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkMemory measures the resident memory of the shop with 1,000 buyers in flight that wait
// for a locked row. Target: 150 MB.
func BenchmarkMemory(b *testing.B) {
	shop := builtForBench(b)
	for _, strategy := range []string{"for-update", "redis"} {
		b.Run(strategy, func(b *testing.B) {
			e := benchEngine(b)
			serve := exec.Command(shop, append([]string{"serve", "--addr", "127.0.0.1:0"}, serveArgs(e)...)...)
			out, err := serve.StdoutPipe()
			if err == nil {
				err = serve.Start()
			}
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = serve.Process.Kill(); _ = serve.Wait() }()
			line, err := bufio.NewReader(out).ReadString('\n')
			if err != nil {
				b.Fatal(err)
			}
			base := strings.TrimPrefix(strings.TrimSpace(line), localserver.Listening)
			hold := e.DB.Begin()
			if err := hold.Exec("SELECT id FROM product WHERE name = 'apple' FOR UPDATE").Error; err != nil {
				b.Fatal(err)
			}
			var all sync.WaitGroup
			for range 1000 {
				all.Go(func() {
					if response, err := http.Get(base + "/product/buy?lock=" + strategy); err == nil {
						_, _ = io.Copy(io.Discard, response.Body)
						_ = response.Body.Close()
					}
				})
			}
			for deadline := time.Now().Add(4 * time.Second); inFlight(b, base) < 1000 && time.Now().Before(deadline); {
				time.Sleep(20 * time.Millisecond)
			}
			b.ReportMetric(float64(inFlight(b, base)), "in-flight")
			b.ReportMetric(memory(b, serve.Process.Pid, "VmRSS"), "MB")
			hold.Rollback()
			all.Wait()
			b.ReportMetric(memory(b, serve.Process.Pid, "VmHWM"), "MB-peak")
			b.ReportMetric(0, "ns/op")
		})
	}
}

var inFlightLine = regexp.MustCompile(`(?m)^shop_buys_in_flight (\d+)`)

func inFlight(b *testing.B, base string) int {
	b.Helper()
	response, err := http.Get(base + "/metrics")
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		b.Fatal(err)
	}
	n, err := strconv.Atoi(string(inFlightLine.FindSubmatch(text)[1]))
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// memory reads one line of /proc/PID/status, in MB.
func memory(b *testing.B, pid int, field string) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), field+":")
	kB, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	if err != nil {
		b.Fatal(err)
	}
	return kB / 1024
}
