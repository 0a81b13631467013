package program_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
	"github.com/oversell/oversell/internal/web/webtest"
)

// An appCase is a file of examples/ and the expected result of its search.
type appCase struct {
	file              string // path below examples/
	events            string
	orders, violating int
	quick             bool // make test runs the case; otherwise only make soak does
}

// appCases are the examples with their results. If two buyers read, write and insert without a lock,
// there are 10 schedules, and 6 of them are violations.
var appCases = []appCase{
	{file: "python/naive.yaml", orders: 10, violating: 6, quick: true},
	{file: "python/for-update.yaml", orders: 8, quick: true},
	{file: "python/redis-lock.yaml", orders: 10, quick: true},
	{file: "python/redis-lock.yaml", events: "expire", orders: 490, violating: 240},
	{file: "python/redis-lock.yaml", events: "forget", orders: 490, violating: 240},
	{file: "python/postgres-naive.yaml", orders: 10, violating: 6},
	{file: "python/postgres-for-update.yaml", orders: 8, quick: true},
	{file: "node/naive.yaml", orders: 10, violating: 6, quick: true},
	{file: "node/for-update.yaml", orders: 8, quick: true},
	{file: "node/redis-lock.yaml", orders: 10},
	{file: "node/redis-lock.yaml", events: "expire", orders: 490, violating: 240},
	{file: "node/prepared.yaml", orders: 8},
	{file: "node/postgres-naive.yaml", orders: 10, violating: 6},
	{file: "node/postgres-for-update.yaml", orders: 8},
	{file: "php/naive.yaml", orders: 10, violating: 6, quick: true},
	{file: "php/for-update.yaml", orders: 8, quick: true},
	{file: "php/redis-lock.yaml", orders: 10},
	{file: "java/naive.yaml", orders: 10, violating: 6, quick: true},
	{file: "java/for-update.yaml", orders: 8},
	{file: "go/naive.yaml", orders: 10, violating: 6, quick: true},
	{file: "go/for-update.yaml", orders: 8, quick: true},
	{file: "go/redis-lock.yaml", orders: 10},
	{file: "saleor/as-it-was.yaml", orders: 36, violating: 34, quick: true},
	{file: "saleor/mended.yaml", orders: 8},
}

func (c appCase) name() string {
	name := strings.TrimSuffix(c.file, ".yaml")
	if c.events != "" {
		name += "," + c.events
	}
	return name
}

// exploreApp runs `shop explore --app` in a separate process, as a user does.
func exploreApp(t testing.TB, file string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return shoptest.Run(t, append([]string{"explore", "--app", file}, args...)...)
}

// search returns the result of a search and its exit code. Standard output contains only the JSON.
func search(t *testing.T, file string, args ...string) (code int, r explore.Report, stderr string) {
	t.Helper()
	code, stdout, stderr := exploreApp(t, file, append(args, "--json", "--budget", "10m", "--save", filepath.Join(t.TempDir(), "witness.json"))...)
	if code != shoptest.Harness {
		if err := json.Unmarshal([]byte(stdout), &r); err != nil {
			t.Fatalf("exit %d: %v: %s%s", code, err, stdout, stderr)
		}
	}
	return code, r, stderr
}

func appFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "oversell.yaml")
	shoptest.Write(t, file, text)
	return file
}

// absolute returns an absolute path, for use in an oversell.yaml in another folder.
func absolute(t testing.TB, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	require.NoError(t, err)
	return path
}

func (c appCase) search(t *testing.T, args ...string) explore.Report {
	t.Helper()
	if c.events != "" {
		args = append(args, "--events", c.events)
	}
	code, r, stderr := search(t, shoptest.Example(t, c.file), args...)
	if code == shoptest.Harness {
		t.Fatal(stderr)
	}
	return r
}

func (c appCase) found(t testing.TB, r explore.Report) {
	t.Helper()
	if r.Void > 0 || !r.Complete || r.Explored != c.orders || r.Violations != c.violating {
		t.Errorf("%d of %d orders break, complete %v, %d void (%v); want %d of %d", r.Violations, r.Explored, r.Complete, r.Void, r.Voids, c.violating, c.orders)
	}
}

// TestApp: each example has the known number of schedules and of violations.
func TestApp(t *testing.T) {
	t.Parallel()
	for _, c := range appCases {
		t.Run(c.name(), func(t *testing.T) {
			if !c.quick {
				tier.Soak(t, "make test searches only some of the example programs")
			}
			c.found(t, c.search(t))
		})
	}
}

// TestAppKilled: after the explorer is killed, none of its processes remains.
func TestAppKilled(t *testing.T) {
	t.Parallel()
	file := shoptest.Example(t, "python/redis-lock.yaml")
	mark := "OVERSELL_TEST_MARK=" + strings.ReplaceAll(t.Name(), "/", "-")
	times := 1
	if tier.Soaking() {
		times = 10
	}
	for range times {
		cmd := shoptest.Command(t, "explore", "--app", file, "--events", "expire", "--full", "--budget", "10m")
		cmd.Env = append(cmd.Environ(), mark)
		require.NoError(t, cmd.Start())
		webtest.Eventually(t, "two processes of the program run", func() bool {
			return len(slices.DeleteFunc(shoptest.With(t, mark), func(line string) bool { return !strings.Contains(line, "shop.py") })) == 2
		})
		time.Sleep(time.Second) // during the search
		require.NoError(t, cmd.Process.Kill())
		if _ = cmd.Wait(); cmd.ProcessState.Exited() {
			t.Fatalf("it ended before it was killed: %v", cmd.ProcessState)
		}
		webtest.Eventually(t, "nothing is left", func() bool { return len(shoptest.With(t, mark)) == 0 })
	}
}

// TestAppBudget: a budget below one schedule ends that schedule, and one line says so.
func TestAppBudget(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := exploreApp(t, shoptest.Example(t, "python/naive.yaml"), "--budget", "1ms")
	if code != shoptest.Harness || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "--budget 1ms ended before the first schedule did; raise it, for example to 10ms") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
}

// TestAppReduction: a search with --full has the same verdicts as the reduced search.
func TestAppReduction(t *testing.T) {
	tier.Soak(t, "a long search of a program")
	for _, c := range appCases {
		t.Run(c.name(), func(t *testing.T) {
			full := c.search(t, "--full")
			if full.Void > 0 || !full.Complete {
				t.Fatalf("%d void, complete %v", full.Void, full.Complete)
			}
			if (full.Violations > 0) != (c.violating > 0) || full.Explored < c.orders {
				t.Errorf("%d of all %d orders break, and reduced %d of %d", full.Violations, full.Explored, c.violating, c.orders)
			}
			t.Logf("%d of %d", full.Violations, full.Explored)
		})
	}
}

// TestAppHeldBack: the explorer, the program and the servers share a tenth of a processor. Each example
// has its usual result, or the explorer discards runs. The verdict is never wrong.
func TestAppHeldBack(t *testing.T) {
	tier.Soak(t, "a long search of a program")
	for _, c := range appCases {
		t.Run(c.name(), func(t *testing.T) {
			file := shoptest.Example(t, c.file)
			args := []string{"explore", "--app", file, "--json", "--budget", "10m"}
			if c.events != "" {
				args = append(args, "--events", c.events)
			}
			cmd := shoptest.Command(t, args...)
			heldBack(t, cmd)
			var errs strings.Builder
			cmd.Stderr = &errs
			out, err := cmd.Output()
			var r explore.Report
			if json.Unmarshal(out, &r) != nil {
				t.Fatalf("%v: %s%s", err, out, errs.String())
			}
			if r.Void == 0 && r.Complete {
				c.found(t, r)
			}
			if c.violating == 0 && r.Violations > 0 || r.Void == 0 && !r.Complete {
				t.Errorf("%d of %d orders break, complete %v, %d void (%v)", r.Violations, r.Explored, r.Complete, r.Void, r.Voids)
			}
			t.Logf("%d of %d orders break, %d void (%v), %.0f s", r.Violations, r.Explored, r.Void, r.Voids, r.Seconds)
		})
	}
}

// heldBack limits the command and its children to a tenth of a processor: 10 ms in each 100 ms
// (control group v2's cpu.max, v1's cpu.cfs_quota_us). It skips the test if this is not permitted.
func heldBack(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	name := fmt.Sprintf("oversell-test-%d", os.Getpid())
	var group string
	for parent, limits := range map[string]map[string]string{
		"/sys/fs/cgroup/cpu": {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "10000"},
		"/sys/fs/cgroup":     {"cpu.max": "10000 100000"},
	} {
		group = filepath.Join(parent, name)
		if limit(group, limits) == nil {
			break
		}
		_ = os.Remove(group)
		group = ""
	}
	if group == "" {
		t.Skip("no control group of processors may be made here")
	}
	t.Cleanup(func() {
		webtest.Eventually(t, "the control group is empty", func() bool { return os.Remove(group) == nil })
	})
	quoted := strconv.Quote(filepath.Join(group, "cgroup.procs"))
	cmd.Args = append([]string{"sh", "-c", "echo $$ > " + quoted + ` && exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
}

func limit(group string, limits map[string]string) error {
	if err := os.Mkdir(group, 0o755); err != nil {
		return err
	}
	for name, value := range limits {
		if err := os.WriteFile(filepath.Join(group, name), []byte(value), 0o644); err != nil {
			return err
		}
	}
	return nil
}
