package runner

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var root = sync.OnceValue(func() string {
	dir, err := filepath.Abs("../..")
	if err != nil {
		panic(err)
	}
	return dir
})

// A result holds the exit code, the output and the files of a job.
type result struct {
	code        int
	log         string
	summary     string // the text on the job's page
	annotations []annotation
	files       string // the folder of the uploaded or declared artifacts
	took        time.Duration
}

type annotation struct {
	level, file, line, message string
}

// machine is an empty runner: a new HOME, and a folder for the files that GitHub stores.
type machine struct {
	home, standin string
}

func newMachine(t *testing.T) machine {
	t.Helper()
	return machine{home: t.TempDir(), standin: t.TempDir()}
}

// environ returns the environment of a runner. A job gets none of this process's environment except the
// caches of downloads. Without the caches, the times of a job would depend on the network.
func (m machine) environ(more ...string) []string {
	return append(append(shared(), "HOME="+m.home, "STANDIN="+m.standin), more...)
}

// shared returns the part of the environment that all machines share.
var shared = sync.OnceValue(func() []string {
	path := strings.Join([]string{
		filepath.Join(root(), "tools/runner/bin"), filepath.Join(runtime.GOROOT(), "bin"),
		"/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin", "/usr/local/bin",
	}, ":")
	env := []string{
		"PATH=" + path, "LANG=C.UTF-8", "TMPDIR=" + os.TempDir(),
		"GOFLAGS=-trimpath", "npm_config_prefer_offline=true",
	}
	for name, command := range map[string][]string{
		"GOMODCACHE":       {"go", "env", "GOMODCACHE"},
		"GOPROXY":          {"go", "env", "GOPROXY"},
		"GOCACHE":          {"go", "env", "GOCACHE"},
		"npm_config_cache": {"npm", "config", "get", "cache"},
	} {
		if out, err := exec.Command(command[0], command[1:]...).Output(); err == nil {
			env = append(env, name+"="+strings.TrimSpace(string(out)))
		}
	}
	return slices.Clip(env)
})

func (m machine) job(more ...string) []string {
	return m.environ(append(more, "STANDIN_RELEASES="+releases())...)
}

func (m machine) run(t *testing.T, dir string, env []string, command ...string) (code int, out string) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Env = dir, env
	cmd.WaitDelay = 10 * time.Second
	var buffer bytes.Buffer
	cmd.Stdout, cmd.Stderr = &buffer, &buffer
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, &buffer)
	}
	return cmd.ProcessState.ExitCode(), buffer.String()
}

// example is one of the shops of examples/ as a repository of its own.
type example struct {
	language, prepare string
	files             []string // except the YAML files
}

var (
	node   = example{"node", "npm ci", []string{"server.mjs", "package.json", "package-lock.json"}}
	python = example{"python", "apt-get install -y python3-pymysql", []string{"shop.py"}}
	golang = example{"go", "go build -o shop .", []string{"main.go"}}
)

// repository makes a repository in which oversell.yaml is the example's file for the mode. Job is the
// path of the workflow, and text its content, in which "npm ci" is the line that prepares Node.
func (e example) repository(t *testing.T, mode, job, text string) string {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(root(), "examples")
	for _, name := range e.files {
		write(t, filepath.Join(dir, name), read(t, filepath.Join(source, e.language, name)))
	}
	write(t, filepath.Join(dir, "schema.sql"), read(t, filepath.Join(source, "schema.sql")))
	yaml := read(t, filepath.Join(source, e.language, mode+".yaml"))
	write(t, filepath.Join(dir, "oversell.yaml"), strings.Replace(yaml, "../schema.sql", "schema.sql", 1))
	write(t, filepath.Join(dir, ".gitignore"), "/node_modules/\n/shop\n__pycache__/\n")
	if e.language == "go" { // the example belongs to this module
		write(t, filepath.Join(dir, "go.mod"), read(t, filepath.Join(root(), "go.mod")))
		write(t, filepath.Join(dir, "go.sum"), read(t, filepath.Join(root(), "go.sum")))
	}
	write(t, filepath.Join(dir, job), strings.Replace(text, "npm ci", e.prepare, 1))
	git(t, dir, "init", "-q", "-b", "main")
	git(t, dir, "remote", "add", "origin", "https://example.com/team/shop.git")
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "-m", "shop")
	return dir
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=shop", "-c", "user.email=shop@example.com"}, args...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// releases returns a folder with the layout of the releases page. Its one release is this tree.
var releases = sync.OnceValue(func() string {
	dir, err := makeReleases()
	if err != nil {
		panic(err)
	}
	return dir
})

func makeReleases() (string, error) {
	dir := filepath.Join(temporary, "releases")
	download := filepath.Join(dir, "latest/download")
	if err := os.MkdirAll(download, 0o755); err != nil {
		return "", err
	}
	shop := os.Getenv("OVERSELL_SHOP_BIN")
	if shop == "" {
		shop = filepath.Join(temporary, "shop")
		build := exec.Command("go", "build", "-trimpath", "-o", shop, "./cmd/shop")
		build.Dir = root()
		if out, err := build.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%w: %s", err, out)
		}
	}
	var archive bytes.Buffer
	zip := gzip.NewWriter(&archive)
	pack := tar.NewWriter(zip)
	for name, from := range map[string]string{"shop": shop, "install-servers.sh": filepath.Join(root(), "tools/install-servers.sh")} {
		content, err := os.ReadFile(from)
		if err != nil {
			return "", err
		}
		if err := pack.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}); err != nil {
			return "", err
		}
		if _, err := pack.Write(content); err != nil {
			return "", err
		}
	}
	if err := errors.Join(pack.Close(), zip.Close()); err != nil {
		return "", err
	}
	name := fmt.Sprintf("shop_1.0.0_%s_%s.tar.gz", runtime.GOOS, runtime.GOARCH)
	return dir, errors.Join(
		os.WriteFile(filepath.Join(download, name), archive.Bytes(), 0o644),
		os.WriteFile(filepath.Join(download, "checksums.txt"), fmt.Appendf(nil, "%x  %s\n", sha256.Sum256(archive.Bytes()), name), 0o644))
}

var temporary string

func TestMain(m *testing.M) {
	code := func() int {
		var err error
		if temporary, err = os.MkdirTemp("", "runner"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(temporary)
		return m.Run()
	}()
	os.Exit(code)
}

// installNodeModules does nothing if npm has installed the packages since package-lock.json was written.
var installNodeModules = sync.OnceFunc(func() {
	wanted, err := os.Stat("package-lock.json")
	if err != nil {
		panic(err)
	}
	if have, err := os.Stat("node_modules/.package-lock.json"); err == nil && have.ModTime().After(wanted.ModTime()) {
		return
	}
	if out, err := exec.Command("npm", "ci", "--no-audit", "--no-fund").CombinedOutput(); err != nil {
		panic(string(out))
	}
})

// verdicts are the modes of the examples, with the exit code and the verdict of shop ci.
var verdicts = map[string]struct {
	exit    int
	verdict string
}{"naive": {1, "broken"}, "for-update": {0, "holds"}}

// judge checks the result of the job, and returns the check in result.json.
func (r result) judge(t *testing.T, mode string) check {
	t.Helper()
	t.Logf("%s: exit code %d after %.1f s", mode, r.code, r.took.Seconds())
	want := verdicts[mode]
	if (r.code != 0) != (want.exit != 0) {
		t.Errorf("the job exits with %d\n%s", r.code, r.log)
	}
	if !strings.Contains(r.summary, want.verdict) {
		t.Errorf("the summary does not say %s: %q\n%s", want.verdict, r.summary, r.log)
	}
	if r.files == "" {
		t.Fatalf("no artifact\n%s", r.log)
	}
	var d struct {
		Exit   int
		Checks []check
	}
	if err := json.Unmarshal([]byte(read(t, filepath.Join(r.files, "result.json"))), &d); err != nil {
		t.Fatal(err)
	}
	if d.Exit != want.exit || len(d.Checks) != 1 || d.Checks[0].Status != want.verdict {
		t.Fatalf("result.json: exit %d, %+v\n%s", d.Exit, d.Checks, r.log)
	}
	for _, name := range []string{"report.html", "oversell.sarif", "junit.xml"} {
		if read(t, filepath.Join(r.files, name)) == "" {
			t.Errorf("%s is empty", name)
		}
	}
	if _, err := os.Stat(filepath.Join(r.files, "oversell.witness.json")); (err == nil) != (mode == "naive") {
		t.Errorf("the replay file: %v", err)
	}
	return d.Checks[0]
}

// check holds the fields of a check in result.json that the tests use.
type check struct {
	Status, File string
	Line         int
	Unchanged    *struct{ Commit string }
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), 0o644)); err != nil {
		t.Fatal(err)
	}
}
