package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/tier"
)

// An appCase is one of examples/ and the expected result of its search.
type appCase struct {
	file              string // in examples/
	events            string
	orders, violating int
	needs             []string // programs
	quick             bool     // in make test; the others only in make soak
}

// appCases are the examples with their results. For two buyers that read, write and insert, there
// are 10 schedules, of which 6 break.
var appCases = []appCase{
	{file: "python/naive.yaml", orders: 10, violating: 6, needs: []string{"python3"}, quick: true},
	{file: "python/for-update.yaml", orders: 8, needs: []string{"python3"}, quick: true},
	{file: "python/redis-lock.yaml", orders: 10, needs: []string{"python3"}, quick: true},
	{file: "python/redis-lock.yaml", events: "expire", orders: 490, violating: 240, needs: []string{"python3"}},
	{file: "python/redis-lock.yaml", events: "forget", orders: 490, violating: 240, needs: []string{"python3"}},
	{file: "python/postgres-naive.yaml", orders: 10, violating: 6, needs: []string{"python3"}},
	{file: "python/postgres-for-update.yaml", orders: 8, needs: []string{"python3"}, quick: true},
	{file: "node/naive.yaml", orders: 10, violating: 6, needs: []string{"node", "npm"}, quick: true},
	{file: "node/for-update.yaml", orders: 8, needs: []string{"node", "npm"}, quick: true},
	{file: "node/redis-lock.yaml", orders: 10, needs: []string{"node", "npm"}},
	{file: "node/redis-lock.yaml", events: "expire", orders: 490, violating: 240, needs: []string{"node", "npm"}},
	{file: "node/prepared.yaml", orders: 8, needs: []string{"node", "npm"}},
	{file: "node/postgres-naive.yaml", orders: 10, violating: 6, needs: []string{"node", "npm"}},
	{file: "node/postgres-for-update.yaml", orders: 8, needs: []string{"node", "npm"}},
	{file: "php/naive.yaml", orders: 10, violating: 6, needs: []string{"php"}, quick: true},
	{file: "php/for-update.yaml", orders: 8, needs: []string{"php"}, quick: true},
	{file: "php/redis-lock.yaml", orders: 10, needs: []string{"php"}},
	{file: "java/naive.yaml", orders: 10, violating: 6, needs: []string{"java"}, quick: true},
	{file: "java/for-update.yaml", orders: 8, needs: []string{"java"}},
	{file: "go/naive.yaml", orders: 10, violating: 6, needs: []string{"go"}, quick: true},
	{file: "go/for-update.yaml", orders: 8, needs: []string{"go"}, quick: true},
	{file: "go/redis-lock.yaml", orders: 10, needs: []string{"go"}},
	{file: "saleor/as-it-was.yaml", orders: 36, violating: 34, needs: []string{"python3"}, quick: true},
	{file: "saleor/mended.yaml", orders: 8, needs: []string{"python3"}},
}

// name returns the name of the subtest.
func (c appCase) name() string {
	name := strings.TrimSuffix(c.file, ".yaml")
	if c.events != "" {
		name += "," + c.events
	}
	return name
}

// need returns the file. It skips the test if the case's runtime or one of its libraries is
// missing, or if gates are not supported.
func (c appCase) need(t testing.TB) string {
	t.Helper()
	tier.Test(t, "needs servers")
	if runtime.GOOS != "linux" {
		t.Skip("exploring a program needs Linux")
	}
	for _, name := range c.needs {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed", name)
		}
	}
	var err error
	for _, name := range c.needs {
		switch name {
		case "npm":
			err = nodeModules()
		case "go":
			err = goShop()
		case "python3":
			lacksLibrary(t, "/usr/bin/python3", "-c", "import pymysql, redis, psycopg2")
		case "php":
			lacksLibrary(t, "php", "-r", "exit(extension_loaded('pdo_mysql') && extension_loaded('redis') ? 0 : 1);")
		case "java":
			lacksLibrary(t, "test", "-e", "/usr/share/java/mariadb-java-client.jar")
			lacksLibrary(t, "javac", "-version")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(absolute(t, "../../examples"), c.file)
}

// lacksLibrary skips the test if the command fails, since the runtime lacks a library of the shop.
func lacksLibrary(t testing.TB, command ...string) {
	t.Helper()
	if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		t.Skipf("a library of the shop is not installed: %s: %v %s", strings.Join(command, " "), err, out)
	}
}

// goShop builds examples/go.
var goShop = sync.OnceValue(func() error {
	cmd := exec.Command("go", "build", "-o", "shop", ".")
	cmd.Dir = "../../examples/go"
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w: %s", err, out)
	}
	return nil
})

// nodeModules installs the packages of examples/node, unless npm has done so since its lock file
// was written: npm ci first removes them, while another test's shop may use them.
var nodeModules = sync.OnceValue(func() error {
	const dir = "../../examples/node"
	wanted, err := os.Stat(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return err
	}
	if there, err := os.Stat(filepath.Join(dir, "node_modules/.package-lock.json")); err == nil && there.ModTime().After(wanted.ModTime()) {
		return nil
	}
	cmd := exec.Command("npm", "ci", "--no-audit", "--no-fund")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w: %s", err, out)
	}
	return nil
})

// exploreApp runs `shop explore --app` in a separate process, as a user does.
func exploreApp(t testing.TB, file string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return exitOfCommand(t, plainCommand(t, append([]string{"explore", "--app", file}, args...)...))
}

// appFile writes the file of a program under test, and returns its path.
func appFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "oversell.yaml")
	write(t, file, text)
	return file
}

// absolute returns a path as the file of a program needs it: it is in another folder.
func absolute(t testing.TB, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// searchApp returns the result of a search from --json.
func searchApp(t testing.TB, c appCase, args ...string) explore.Report {
	t.Helper()
	args = append(args, "--json", "--budget", "10m")
	if c.events != "" {
		args = append(args, "--events", c.events)
	}
	code, stdout, stderr := exploreApp(t, c.need(t), args...)
	if code > exitInconclusive || code == exitHarness {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	var r explore.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%v: %s%s", err, stdout, stderr)
	}
	return r
}

// found compares a search with the table.
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
				tier.Soak(t, "make test has others")
			}
			c.found(t, searchApp(t, c))
		})
	}
}

// TestAppKilled: when the explorer dies, nothing of it remains.
func TestAppKilled(t *testing.T) {
	t.Parallel()
	file := appCase{file: "python/redis-lock.yaml", needs: []string{"python3"}}.need(t)
	mark := "OVERSELL_TEST_MARK=" + strings.ReplaceAll(t.Name(), "/", "-")
	times := 1
	if tier.Soaking() {
		times = 10
	}
	for range times {
		cmd := plainCommand(t, "explore", "--app", file, "--events", "expire", "--full", "--budget", "10m")
		cmd.Env = append(cmd.Environ(), mark)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		await(t, "two processes of the program run", func() bool { return len(marked(t, mark, "shop.py")) == 2 })
		time.Sleep(time.Second) // during the search
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if _ = cmd.Wait(); cmd.ProcessState.Exited() {
			t.Fatalf("it ended before it was killed: %v", cmd.ProcessState)
		}
		await(t, "nothing is left", func() bool { return len(marked(t, mark, "")) == 0 })
	}
}

// marked returns the processes that have inherited an environment variable, and whose command line
// contains the word.
func marked(t *testing.T, variable, word string) (all []string) {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, process := range processes {
		env, err1 := os.ReadFile(filepath.Join(process, "environ"))
		line, err2 := os.ReadFile(filepath.Join(process, "cmdline"))
		if err1 == nil && err2 == nil && bytes.Contains(env, []byte(variable)) && bytes.Contains(line, []byte(word)) {
			all = append(all, process)
		}
	}
	return all
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}
