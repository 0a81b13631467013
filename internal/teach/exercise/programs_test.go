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
	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/teach/exercise"
	"github.com/oversell/oversell/internal/teach/exercise/exercisetest"
	"github.com/oversell/oversell/internal/tier"
)

// withOwnServers use servers that the check starts, as for a learner: one passes and one fails, in
// different languages.
var withOwnServers = []string{"01-one-statement/python/solution", "03-token/node/start"}

// TestExercisePrograms runs the exercises for other languages as a learner does. All except two use
// one of two existing pairs of servers, since starting servers takes 5 s more. The wrong answers
// have the same mistakes in each language: make test judges those of the first language, and make
// soak all.
func TestExercisePrograms(t *testing.T) {
	tier.Soak(t, "searches 30 programs; internal/teach/exercise judges the same mistakes in Go")
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("exploring a program needs Linux")
	}
	all, err := exercises.All()
	if err != nil {
		t.Fatal(err)
	}
	pairs := make(chan *app.Servers, 2)
	for range cap(pairs) {
		pairs <- programServers(t)
	}
	for _, e := range all {
		for i, language := range e.LanguageNames() {
			for what, words := range exercisetest.Sources(e, language) {
				name := e.Folder + "/" + language + "/" + what
				t.Run(name, func(t *testing.T) {
					if i > 0 && strings.HasPrefix(what, "wrong/") {
						exercisetest.Code(t, e, language, what) // the patch applies
						tier.Soak(t, "the first language has the same mistake")
					}
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
	if err != nil {
		t.Fatal(err)
	}
	servers, err := app.Open(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := servers.Close(); err != nil {
			t.Error(err)
		}
	})
	return servers
}

// onServers makes a started exercise use servers that already run.
func onServers(t *testing.T, dir string, servers *app.Servers) {
	t.Helper()
	file := filepath.Join(dir, exercise.AppFile)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
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

// port returns the port of an address.
func port(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
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

// judgeProgram checks a folder. words are expected in the finding; "" means that it passes.
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
