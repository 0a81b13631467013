package exercise

import (
	"errors"
	"fmt"
	"go/format"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/exercises"
	"github.com/oversell/oversell/exercises/judge"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/teach/exercise/exercisetest"
	"github.com/oversell/oversell/internal/tier"
)

// crowded lists the sources that a rush also judges. A rush takes seconds, and the shop's own tests
// cover correct locks.
var crowded = []string{"01-one-statement/solution", "02-lost-release/wrong/no-wait", "06-retry/solution"}

// long lists the references with the longest searches, which take a quarter of the time of all searches.
var long = []string{"07-fencing/solution", "12-two-stores/solution"}

// bad maps functions in testdata/bad to what the judge must say about them.
var bad = map[string]string{
	"Panics":       `buyer-1: panic: assignment to entry in nil map, at HERE$`,
	"PanicsBeside": `^the code runs: panic: assignment to entry in nil map, at HERE$`,
	"Endless":      `buyer-1, alone, does not come back, and no other buyer is there: it is at bad\.go:\d+ \((run|sleep)`,
	"Stays":        `a goroutine that the code has begun does not end when its buyers have gone: it is at HERE \(select`,
	"Restocks":     `more is changed than the order asks for|and then 3 are left`,
	"Deletes":      `more is changed than the order asks for: record 1 .* is gone`,
	"Columns":      `more is changed than the order asks for: the fence of apricot was 0 and is 77; the fence of nobody's was 0 and is 77$`,
	"Tables":       `more is changed than the order asks for: the table mine is new$`,
	"Keys":         `more is changed than the order asks for: the key lock:nobody's in Redis is gone$`,
	"Elsewhere":    `and then 3 are left`,
	"Exits":        `^the code runs: the code ends the whole process, where Buy should return$`,
	"Claims":       `and then 3 are left`,
	"Hides":        `every order .*: the buyers wait for each other in memory that a second process does not have`,
	"Fills":        `^the code runs: fatal error: runtime: (out of memory|cannot allocate memory), at HERE$`,
	"Spins":        `tries again without end`,
}

// A built program has every source of every exercise, and the bad answers.
type built struct {
	program string
	root    string // folder of this project
	module  string // the folder of a learner's module with the wrong and the bad answers
}

// answers is the folder of the module with the wrong and the bad answers.
const answers = "answers"

// answer returns the import path and the folder of a source.
func (b built) answer(name string) (path, dir string) {
	if isPackage(name) {
		return Module + "/exercises/" + name, filepath.Join(b.root, "exercises", name)
	}
	return "learner.example/one-statement/" + answers + "/" + name, filepath.Join(b.module, answers, name)
}

// isPackage reports whether a source is a package of this project, which other tests compile, too.
func isPackage(name string) bool {
	return strings.HasSuffix(name, "/start") || strings.HasSuffix(name, "/solution")
}

// TestJudged builds one program for all sources, and judges each.
func TestJudged(t *testing.T) {
	tier.Test(t, "compiles a judge and explores for minutes")
	b := build(t)
	t.Run("Sources", b.sources)
	t.Run("Bad", b.bad)
}

// build writes the wrong and the bad answers into one module, vets them, and compiles all sources
// with the judge.
func build(t *testing.T) built {
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	all, err := exercises.All()
	require.NoError(t, err)
	b := built{root: root, module: t.TempDir()}
	mod, sum, err := moduleOf(all[0], root, "")
	require.NoError(t, err)
	write(t, filepath.Join(b.module, "go.mod"), mod)
	write(t, filepath.Join(b.module, "go.sum"), sum)
	var sources []source
	for _, e := range all {
		for what := range exercisetest.Sources(e, "") {
			name := e.Folder + "/" + what
			path, dir := b.answer(name)
			add := source{Name: name, Path: path, Reference: Module + "/exercises/" + e.Folder + "/solution"}
			if isPackage(name) {
				sources = append(sources, add)
				continue
			}
			code := exercisetest.Code(t, e, "", what)
			if tidy, err := format.Source([]byte(code)); err != nil || string(tidy) != code {
				t.Errorf("%s is not as gofmt has it: %v", name, err)
			}
			if tier.Soaking() || slices.Contains(crowded, name) { // make test judges no other wrong answer
				sources = append(sources, add)
				write(t, filepath.Join(dir, "shop.go"), code)
			}
		}
	}
	path, dir := b.answer("bad")
	code, err := os.ReadFile("testdata/bad/bad.go")
	require.NoError(t, err)
	write(t, filepath.Join(dir, "bad.go"), string(code))
	for name := range bad {
		sources = append(sources, source{Name: name, Path: path, New: name})
	}
	temp := t.TempDir()
	if b.program, err = buildJudge(t.Context(), b.module, temp, sources); err != nil {
		t.Fatal(err)
	}
	if !tier.Soaking() {
		return b
	}
	if out, err := goCommand(t.Context(), b.module, temp, "vet", "./"+answers+"/...").CombinedOutput(); err != nil {
		t.Errorf("go vet: %v: %s", err, out)
	}
	return b
}

func write(t *testing.T, file, text string) {
	t.Helper()
	require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)))
}

// atOnce limits the judges that run at the same time: a search takes one processor, and tests of
// other packages run meanwhile.
var atOnce = make(chan struct{}, min(2, runtime.GOMAXPROCS(0)))

func judgeOf(t *testing.T, j judged, crowd bool) judge.Judgement {
	t.Helper()
	atOnce <- struct{}{}
	defer func() { <-atOnce }()
	r, err := j.orders(t.Context())
	if err == nil && crowd && (r.Last().Verdict == judge.Passed || r.Last().Verdict == judge.Unsure) {
		var c judge.Check
		c, _, _, err = j.crowds(t.Context())
		whole := Result{Judgement: r}
		whole.add(c)
		r = whole.Judgement
	}
	require.NoError(t, err)
	return r
}

// sources: each reference passes. Each start and each wrong answer gets the finding in its
// exercise; make test judges only some of these.
func (b built) sources(t *testing.T) {
	all, err := exercises.All()
	require.NoError(t, err)
	for _, e := range all {
		sources := exercisetest.Sources(e, "")
		mistakes := slices.Sorted(maps.Keys(sources))
		mistakes = slices.DeleteFunc(mistakes, func(what string) bool { return sources[what] == "" })
		for what, words := range sources {
			name := e.Folder + "/" + what
			t.Run(name, func(t *testing.T) {
				if slices.Index(mistakes, what) > 0 && !slices.Contains(crowded, name) {
					tier.Soak(t, "make test judges one mistake of each exercise")
				}
				if what == "start" && e.Number > 4 {
					tier.Soak(t, "make test judges the starts of the first four exercises")
				}
				if slices.Contains(long, name) {
					tier.Soak(t, "a long search; make test judges the other references")
				}
				t.Parallel()
				path, dir := b.answer(name)
				judgedBy(t, judgeOf(t, judged{b.program, e, name, path, dir}, slices.Contains(crowded, name)), words)
			})
		}
	}
}

// bad: code that panics, never ends, or writes elsewhere is reported in one line, and nothing
// hangs.
func (b built) bad(t *testing.T) {
	e, err := exercises.Find("1")
	require.NoError(t, err)
	code, err := os.ReadFile("testdata/bad/bad.go")
	require.NoError(t, err)
	for name, words := range bad {
		before, _, marked := strings.Cut(string(code), "// HERE: "+name+"\n")
		expect.Equal(t, marked, strings.Contains(words, "HERE"), "the mark of", name, "in bad.go and in its words")
		words = strings.Replace(words, "HERE", fmt.Sprintf(`bad\.go:%d`, 1+strings.Count(before, "\n")), 1)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, dir := b.answer("bad")
			judgedBy(t, judgeOf(t, judged{b.program, e, name, path, dir}, false), words)
		})
	}
}

// judgedBy compares a report with the expected words; "" means that it passes.
func judgedBy(t *testing.T, r judge.Judgement, words string) {
	t.Helper()
	last := r.Last()
	text := last.Name + ": " + last.Why
	for _, c := range r.Checks {
		t.Logf("%s: %s: %s", c.Verdict, c.Name, c.Why)
	}
	switch {
	case words == "" && last.Verdict != judge.Passed:
		t.Errorf("the reference is judged %s: %s\n%s\n%s", last.Verdict, text, last.Story, last.Diagram)
	case words != "" && last.Verdict != judge.Wrong:
		t.Errorf("judged %s: %s", last.Verdict, text)
	case words != "" && !regexp.MustCompile(words).MatchString(text):
		t.Errorf("judged by %q, and should be by %q\n%s", text, words, last.Story)
	case words == "" && (r.Trips < 1 || r.Trips != r.Theirs):
		t.Errorf("%.1f round trips a purchase, and %.1f of the same code", r.Trips, r.Theirs)
	case strings.Contains(last.Why, "\n"):
		t.Errorf("more than a line: %q", last.Why)
	}
	if last.Diagram != "" && last.Story == "" {
		t.Error("there is a diagram, and nothing in words")
	}
}
