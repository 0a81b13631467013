package shoptest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/tier"
)

// Root returns the root folder of this repository.
func Root(t testing.TB) string {
	t.Helper()
	folder, err := root()
	require.NoError(t, err)
	return folder
}

// root returns the nearest folder upwards with a go.mod.
var root = sync.OnceValues(func() (string, error) {
	folder, err := os.Getwd()
	for err == nil {
		if _, none := os.Stat(filepath.Join(folder, "go.mod")); none == nil {
			return folder, nil
		}
		if folder == filepath.Dir(folder) {
			err = errors.New("no go.mod in a folder above")
		}
		folder = filepath.Dir(folder)
	}
	return "", err
})

// runtimes lists the commands that the programs in each folder of examples/ need.
var runtimes = map[string][]string{
	"go": {"go"}, "java": {"java"}, "node": {"node", "npm"}, "php": {"php"}, "python": {"python3"}, "saleor": {"python3"},
}

// Example returns the path of a file in examples/. It skips the test if the program cannot run on this machine.
func Example(t testing.TB, file string) string {
	t.Helper()
	folder, _, _ := strings.Cut(file, "/")
	Needs(t, runtimes[folder]...)
	return filepath.Join(Root(t), "examples", file)
}

// Needs skips a test of `shop explore --app` under `make quick`, outside Linux, and if a runtime or one of
// its libraries is missing. For "npm" it installs the packages of examples/node, and for "go" it builds
// examples/go.
func Needs(t testing.TB, programs ...string) {
	t.Helper()
	tier.Test(t, "needs servers")
	if runtime.GOOS != "linux" {
		t.Skip("exploring a program needs Linux")
	}
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed", name)
		}
	}
	for _, name := range programs {
		switch name {
		case "npm":
			NodeModules(t)
		case "go":
			goShop(t)
		case "python3":
			needsLibrary(t, "/usr/bin/python3", "-c", "import pymysql, redis, psycopg2")
		case "php":
			needsLibrary(t, "php", "-r", "exit(extension_loaded('pdo_mysql') && extension_loaded('redis') ? 0 : 1);")
		case "java":
			needsLibrary(t, "test", "-e", "/usr/share/java/mariadb-java-client.jar")
			needsLibrary(t, "javac", "-version")
		}
	}
}

// needsLibrary skips the test if the command fails, which means that a library of the program is not installed.
func needsLibrary(t testing.TB, command ...string) {
	t.Helper()
	if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		t.Skipf("a library of the program is not installed: %s: %v %s", strings.Join(command, " "), err, out)
	}
}

// Each test binary builds examples/go and installs the packages of examples/node only once.
var goOnce, nodeOnce sync.Once

func goShop(t testing.TB) {
	goOnce.Do(func() { runIn(t, "examples/go", "go", "build", "-o", "shop", ".") })
}

// NodeModules installs the packages of examples/node, unless they are newer than npm's lock file. It avoids
// needless installs because `npm ci` first removes the packages, which another test's program may be using.
func NodeModules(t testing.TB) {
	t.Helper()
	nodeOnce.Do(func() {
		dir := filepath.Join(Root(t), "examples/node")
		wanted, err := os.Stat(filepath.Join(dir, "package-lock.json"))
		require.NoError(t, err)
		if there, err := os.Stat(filepath.Join(dir, "node_modules/.package-lock.json")); err == nil && there.ModTime().After(wanted.ModTime()) {
			return
		}
		runIn(t, "examples/node", "npm", "ci", "--no-audit", "--no-fund")
	})
}

// runIn runs a command in a folder of this repository.
func runIn(t testing.TB, folder string, command ...string) {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = filepath.Join(Root(t), folder)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", strings.Join(command, " "), err, out)
	}
}

// Write writes a file of a test.
func Write(t testing.TB, file, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
}

// Read returns the text of a file in this repository.
func Read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Root(t), path))
	require.NoError(t, err)
	return string(text)
}

// Block returns the fenced code block that contains a text, from a page in docs/. The result has no fences.
func Block(t testing.TB, page, contains string) string {
	t.Helper()
	for _, block := range regexp.MustCompile("(?s)```(?:text|mermaid)\n(.*?)\n```").FindAllStringSubmatch(Read(t, "docs/"+page), -1) {
		if strings.Contains(block[1], contains) {
			return block[1]
		}
	}
	t.Fatalf("docs/%s has no block with %q", page, contains)
	return ""
}
