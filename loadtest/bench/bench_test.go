//go:build bench

// Package bench has the benchmarks of docs/reference/benchmarks.md that need a shop. The tag keeps
// them out of `go test ./...`, which would otherwise compile and link them each time.
package bench

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9/logging"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/load/quantile"
	"github.com/oversell/oversell/internal/product/stock"
	"github.com/oversell/oversell/internal/testbed/localserver"
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

func median(values []float64) float64 {
	slices.Sort(values)
	return quantile.Of(values, 0.5)
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
