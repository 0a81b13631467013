//go:build bench

// Package bench has the benchmarks of docs/reference/benchmarks.md that need a shop. The tag keeps
// them out of `go test ./...`, which would otherwise compile and link them each time.
package bench

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
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9/logging"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/load/quantile"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/product/stock"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/web"
)

const (
	benchBuyers = 64 // number of goroutines, HTTP clients, and database connections
	benchRounds = 5
	benchTime   = 2 * time.Second // duration of a round
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	logging.Disable()
	os.Exit(m.Run())
}

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

// builtForBench builds the program.
func builtForBench(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "shop")
	if out, err := exec.Command("go", "build", "-o", path, "../../cmd/shop").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return path
}

// serveArgs returns the flags of a shop on the engine's servers.
func serveArgs(e *engine.Engine) []string {
	return []string{
		"--db", e.URLs.DB, "--redis", e.URLs.Redis, "--redlock", strings.Join(e.URLs.Redlock, ","),
		"--zookeeper", strings.Join(e.URLs.Zookeeper, ","), "--etcd", strings.Join(e.URLs.Etcd, ","),
	}
}

// benchShop starts the built program on the engine's servers.
func benchShop(b *testing.B, e *engine.Engine, check bool) (addr string) {
	b.Helper()
	addr, _, stop := benchProgram(b, builtForBench(b), append(serveArgs(e), "--sold-out-check="+strconv.FormatBool(check), "--admission", "off")...)
	b.Cleanup(stop)
	return addr
}

// benchProgram starts a program that serves until stop is called.
func benchProgram(b *testing.B, binary string, args ...string) (addr string, pid int, stop func()) {
	b.Helper()
	serve := exec.Command(binary, append([]string{"serve", "--addr", "127.0.0.1:0", "--log-level", "warn"}, args...)...)
	out, err := serve.StdoutPipe()
	if err == nil {
		err = serve.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	stop = func() { _ = serve.Process.Kill(); _ = serve.Wait() }
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		b.Fatal(err)
	}
	return strings.TrimPrefix(strings.TrimSpace(line), localserver.Listening+"http://"), serve.Process.Pid, stop
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
