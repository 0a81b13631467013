package exercise_test

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/exercises"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/teach/exercise"
	"github.com/oversell/oversell/internal/teach/exercise/exercisetest"
	"github.com/oversell/oversell/internal/tier"
)

// learner runs `shop exercise` in a separate process with its own settings.
type learner struct {
	t      *testing.T
	config string
	env    []string
}

func newLearner(t *testing.T) learner {
	t.Helper()
	return learner{t: t, config: t.TempDir()}
}

func (l learner) exercise(args ...string) (code int, stdout, stderr string) {
	l.t.Helper()
	cmd := shoptest.Command(l.t, append([]string{"exercise"}, args...)...)
	cmd.Env = append(append(cmd.Environ(), "XDG_CONFIG_HOME="+l.config, "GOFLAGS=-mod=mod", "GOPROXY=off"), l.env...)
	return shoptest.Exit(l.t, cmd)
}

// passes runs exercise, which must exit with 0.
func (l learner) passes(args ...string) string {
	l.t.Helper()
	code, out, errs := l.exercise(args...)
	if code != 0 || errs != "" {
		l.t.Fatalf("shop exercise %s: exit %d: %s%s", strings.Join(args, " "), code, out, errs)
	}
	return out
}

// TestExercise follows a learner through an exercise: start, a check with a finding, a compiler
// error, a hint, the solution, a check that passes.
func TestExercise(t *testing.T) {
	tier.Test(t, "needs servers")
	t.Parallel()
	l, dir := newLearner(t), filepath.Join(t.TempDir(), "first")
	l.passes("start", "1", dir)
	file := filepath.Join(dir, "shop.go")
	has := func(text string, wants ...string) {
		t.Helper()
		for _, want := range wants {
			if !regexp.MustCompile(want).MatchString(text) {
				t.Errorf("there is no %q in\n%s", want, text)
			}
		}
	}

	diagram := filepath.Join(t.TempDir(), "wrong.md")
	code, out, errs := l.exercise("check", dir, "--report", diagram)
	if code != shoptest.Broken || errs != "" {
		t.Errorf("the file to begin with: exit %d, %s%s", code, out, errs)
	}
	has(out, "wrong .*oversold: 2 units sold of 1 stocked", "step 1: buyer 1 reads the stock: amount=1",
		`step \d+: buyer 1 sends UPDATE .*, by what it read at step 1 \(amount=1\), though buyer 2 has changed that at step \d+`, "│ buyer 1 ")
	if text, err := os.ReadFile(diagram); err != nil || !strings.Contains(string(text), "sequenceDiagram\n") || !strings.Contains(string(text), "oversold: 2 units") {
		t.Errorf("%v, %s", err, text)
	}

	start, err := os.ReadFile(file)
	require.NoError(t, err)
	for slip, want := range map[string]string{
		"left := p.Amount - o.Amount": `^shop: shop\.go:\d+:\d+: undefined: left; shop\.go:\d+:\d+: undefined: left\n$`,
		"func New(":                   `^shop: New is missing, or is another function: func New\(kit kata\.Kit\) kata\.Strategy\n$`,
		"return receipt, err\n}":      `^shop: shop\.go:\d+:\d+: missing return\n$`,
	} {
		with := ""
		if strings.HasPrefix(slip, "func") {
			with = "func Make("
		}
		shoptest.Write(t, file, strings.Replace(string(start), slip, with+strings.Repeat("\n}", strings.Count(slip, "}")), 1))
		code, out, errs := l.exercise("check", dir)
		if code != shoptest.Harness || out != "" || !regexp.MustCompile(want).MatchString(errs) || strings.Contains(errs, "oversell-judge") {
			t.Errorf("%q: exit %d, %q, %q", slip, code, out, errs)
		}
	}

	has(l.passes("hint", "1", "3"), "UPDATE product SET amount = amount - ")
	solution := l.passes("solution", "1")
	has(solution, "package exercise\n", "Source: MySQL")
	shoptest.Write(t, file, solution[strings.Index(solution, "package exercise\n"):strings.LastIndex(solution, "}\n")+2])
	sums, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	require.NoError(t, err)
	half := string(sums[:len(sums)/2])
	half = half[:strings.LastIndex(half, "\n")+1]
	shoptest.Write(t, filepath.Join(dir, "go.sum"), half) // the go command completes a copy, not the learner's file
	has(l.passes("check", dir), "passed +every order", "passed +200 buyers at once", `round trips of one buyer, alone +5\.0 +5\.0\n`, "sales a second", `faults so far: .* --engine local .* rush, two-processes, crash\n`)
	if after, err := os.ReadFile(filepath.Join(dir, "go.sum")); err != nil || string(after) != half {
		t.Errorf("a check has written go.sum: %v", err)
	}
	has(l.passes("list"), `1 │ One statement .* go `)
	if names, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(names) != 5 {
		t.Errorf("a check has left something behind: %v, %v", names, err)
	}
}

// TestExerciseBadInput: the error is one line that says what to do.
func TestExerciseBadInput(t *testing.T) {
	tier.Test(t, "needs servers")
	t.Parallel()
	l, full := newLearner(t), t.TempDir()
	shoptest.Write(t, filepath.Join(full, "mine.txt"), "")
	odd := t.TempDir()
	shoptest.Write(t, filepath.Join(odd, "exercise.txt"), "99\n")
	bare := filepath.Join(t.TempDir(), "bare")
	l.passes("start", "1", bare, "--language", "node")
	if err := os.RemoveAll(filepath.Join(bare, "node_modules")); err != nil { // the link exists where make workshop was run
		t.Fatal(err)
	}
	gone, moved, goneToo := filepath.Join(t.TempDir(), "gone"), filepath.Join(t.TempDir(), "moved"), filepath.Join(t.TempDir(), "gone-too")
	for dir, language := range map[string]string{gone: "go", moved: "go", goneToo: "python"} {
		l.passes("start", "1", dir, "--language", language)
	}
	for _, file := range []string{filepath.Join(gone, "shop.go"), filepath.Join(goneToo, "shop.py")} {
		require.NoError(t, os.Remove(file))
	}
	mod, err := os.ReadFile(filepath.Join(moved, "go.mod"))
	require.NoError(t, err)
	shoptest.Write(t, filepath.Join(moved, "go.mod"), strings.Replace(string(mod), "=> \"", "=> \"/deleted", 1))
	if code, out, errs := l.exercise("start", "1", ""); code != shoptest.Harness || out != "" || !strings.Contains(errs, "start needs the name of a new folder") {
		t.Errorf("start 1 \"\": exit %d, %q, %q", code, out, errs)
	}
	if out, spaced := l.passes("start", "1", filepath.Join(moved, "two words")), "'"+filepath.Join(moved, "two words")+"'\n"; !strings.HasSuffix(out, "shop exercise check "+spaced) {
		t.Errorf("%q does not end with the path quoted: %s", out, spaced)
	}
	sealed := filepath.Join(t.TempDir(), "sealed")
	shoptest.Write(t, sealed, "")
	for _, c := range []struct {
		args string
		want string
	}{
		{"start 1", "shop: start needs an exercise and a new folder"},
		{"start 0 " + full, `shop: unknown exercise "0"`},
		{"start 1 " + full, "is not empty; choose a new folder"},
		{"check " + gone, "has no shop.go, which the check needs; restore it"},
		{"check " + goneToo, "has no shop.mjs and no shop.py, which the check needs"},
		{"check " + moved, "and that is not there any more; with the one in "},
		{"start 1 " + sealed, "cannot read folder "},
		{"start 1 " + filepath.Join(sealed, "below"), "shop: "},
		{"start 1 " + filepath.Join(full, "new") + " --language cobol", `unknown language of exercise 1 "cobol"; choose from: go, node, python`},
		{"start 11 " + filepath.Join(full, "new") + " --language node", `unknown language of exercise 11 "node"; choose from: go`},
		{"check " + full, "has no exercise.txt, so it is not an exercise"},
		{"check " + odd, `unknown exercise "99"`},
		{"check " + full + " --engine cloud", `unknown engine "cloud"; choose from: embedded, local`},
		{"check " + bare, "has no node_modules; run npm install there, once"},
		{"check " + bare + " --engine local", "--engine local works only for Go"},
		{"check " + bare + " --report x.pdf", "--report"},
		{"hint 1 4", `the hint must be between 1 and 3 (got "4")`},
		{"solution 11 --language node", `unknown language of exercise 11 "node"; choose from: go`},
		{"solution", "solution needs one exercise"},
	} {
		code, out, errs := l.exercise(strings.Fields(c.args)...)
		if code != shoptest.Harness || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, c.want) {
			t.Errorf("shop exercise %s: exit %d, %q, %q; want %q", c.args, code, out, errs, c.want)
		}
	}
	require.NoError(t, os.MkdirAll(filepath.Join(l.config, "oversell"), 0o755))
	shoptest.Write(t, filepath.Join(l.config, "oversell", "exercises.json"), "{")
	if code, _, errs := l.exercise("list"); code != shoptest.Harness || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "repair or delete the file") {
		t.Errorf("damaged progress: exit %d, %q", code, errs)
	}
	if entries, err := os.ReadDir(full); err != nil || len(entries) != 1 {
		t.Errorf("bad input has written something: %v, %v", entries, err)
	}
}

// TestExerciseFaults checks the reference of an exercise with a real fault on private servers, as shop
// verify injects it.
func TestExerciseFaults(t *testing.T) {
	t.Parallel()
	tier.Soak(t, "checks an exercise under a fault on private servers")
	l, dir := newLearner(t), filepath.Join(t.TempDir(), "exercise")
	e, err := exercises.Find("12")
	require.NoError(t, err)
	l.passes("start", "12", dir)
	code, err := e.Files("solution")
	require.NoError(t, err)
	shoptest.Write(t, filepath.Join(dir, "shop.go"), code["shop.go"])
	exit, out, errs := l.exercise("check", dir, "--engine", "local")
	expect.Contains(t, out, "passed  redis-restart, on private servers", "the restart, with the reference: exit", exit, errs)
	// On a busy machine a rush of 200 may be slow without being stuck. That is no error.
	if exit != 0 && !(exit == shoptest.Inconclusive && strings.Contains(out, "slow, not stuck")) {
		t.Errorf("exit %d: %s%s", exit, out, errs)
	}
}

// withOwnServers lists sources for which the check starts the servers, as for a learner. One passes
// and one fails, in different languages.
var withOwnServers = []string{"01-one-statement/python/solution", "03-token/node/start"}

// TestExercisePrograms runs the exercises for other languages as a learner does. All except two use
// one of two existing pairs of servers, since starting servers takes 5 s more. The wrong answers
// have the same mistakes in each language.
func TestExercisePrograms(t *testing.T) {
	tier.Soak(t, "searches 30 programs; internal/teach/exercise judges the same mistakes in Go")
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("exploring a program needs Linux")
	}
	all, err := exercises.All()
	require.NoError(t, err)
	pairs := make(chan *app.Servers, 2)
	for range cap(pairs) {
		pairs <- programServers(t)
	}
	for _, e := range all {
		for _, language := range e.LanguageNames() {
			for what, words := range exercisetest.Sources(e, language) {
				name := e.Folder + "/" + language + "/" + what
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					servers := <-pairs
					defer func() { pairs <- servers }()
					l, dir := startedProgram(t, e, language, what)
					if !slices.Contains(withOwnServers, name) {
						onServers(t, dir, servers)
					}
					judgeProgram(t, l, dir, words)
				})
			}
		}
	}
}

// programServers starts MariaDB and Redis as the check of an exercise does.
func programServers(t *testing.T) *app.Servers {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "program")
	newLearner(t).passes("start", "1", dir, "--language", "python")
	p, err := app.Load(filepath.Join(dir, exercise.AppFile))
	require.NoError(t, err)
	servers, err := app.Open(t.Context(), p)
	require.NoError(t, err)
	t.Cleanup(func() {
		expect.NoError(t, servers.Close())
	})
	return servers
}

// onServers makes a started exercise use servers that already run.
func onServers(t *testing.T, dir string, servers *app.Servers) {
	t.Helper()
	file := filepath.Join(dir, exercise.AppFile)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	mysql, redis := servers.Addresses()["mysql"], servers.Addresses()["redis"]
	changed := string(text)
	for _, line := range [][2]string{
		{"mysql: 127.0.0.1:3306", "mysql: " + mysql},
		{"redis: 127.0.0.1:6379", "redis: " + redis},
		{"local: true", "env: { MYSQL_PORT: \"" + port(t, mysql) + "\", REDIS_PORT: \"" + port(t, redis) + "\" }"},
		{"schema: schema.sql", ""},
	} {
		if !strings.Contains(changed, "\n"+line[0]+"\n") {
			t.Fatalf("%s lacks %q", file, line[0])
		}
		changed = strings.Replace(changed, "\n"+line[0]+"\n", "\n"+line[1]+"\n", 1)
	}
	shoptest.Write(t, file, changed)
}

func port(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	return port
}

// startedProgram starts an exercise and replaces the learner's file by a source.
func startedProgram(t *testing.T, e exercises.Exercise, language, what string) (l learner, dir string) {
	t.Helper()
	l, dir = newLearner(t), filepath.Join(t.TempDir(), "program")
	switch language {
	case "node":
		shoptest.Needs(t, "node", "npm")
	case "python": // only Debian's python3 is sure to have Debian's modules
		shoptest.Needs(t, "python3")
		l.env = []string{"PATH=/usr/bin:" + os.Getenv("PATH")}
	}
	l.passes("start", e.Folder, dir, "--language", language)
	shoptest.Write(t, filepath.Join(dir, e.LearnersFile(language)), exercisetest.Code(t, e, language, what))
	return l, dir
}

// besideReference matches the cost of a program that passes.
var besideReference = regexp.MustCompile(`round trips of one buyer, alone +(\S+) +(\S+)\n`)

// judgeProgram checks a folder. The finding must contain the parameter `words`; "" means that the
// program passes.
func judgeProgram(t *testing.T, l learner, dir, words string) {
	t.Helper()
	exit, out, errs := l.exercise("check", dir)
	want := shoptest.Broken
	if words == "" {
		want = 0
	}
	if exit != want || errs != "" || !regexp.MustCompile(words).MatchString(out) {
		t.Errorf("exit %d, want %d and %q: %s%s", exit, want, words, out, errs)
	}
	if trips := besideReference.FindStringSubmatch(out); want == 0 && (trips == nil || trips[1] != trips[2] || trips[1] == "0.0") {
		t.Errorf("the reference does not take as many round trips as itself: %s", out)
	}
}
