package system

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/ci/result"
	"github.com/oversell/oversell/internal/require"
)

func env(pairs ...string) Env {
	return func(name string) string {
		for _, pair := range pairs {
			if value, found := strings.CutPrefix(pair, name+"="); found {
				return value
			}
		}
		return ""
	}
}

func broken() result.Result {
	return result.Result{Checks: []result.Check{{
		Name: "oversell.yaml", Kind: result.Explore, File: "oversell.yaml", Line: 15, Status: result.Broken, Verdict: "broken",
		Why: "must return no row, and does: SELECT 100% :: x,\ny", Command: "shop explore --app oversell.yaml",
		Sources: []result.Source{{File: "src/a:b,c.js", Line: 42, Text: "at buy (src/a:b,c.js:42:7)"}},
	}}}
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// TestAnnotations: the runner reads a message of several lines, and properties with : and , in them.
func TestAnnotations(t *testing.T) {
	t.Parallel()
	r := broken()
	r.Checks = append(r.Checks,
		result.Check{Name: "b.yaml", File: "b.yaml", Status: result.Inconclusive, Why: "nothing"},
		result.Check{Name: "mine under rush", Status: result.Error, Why: "down"},
		result.Check{Name: "old.yaml", File: "old.yaml", Line: 3, Status: result.Broken, Why: "old", Change: result.Before},
		result.Check{Name: "good.yaml", File: "good.yaml", Status: result.Holds},
	)
	var log bytes.Buffer
	expect.NoError(t, annotate(Publication{Log: &log, Result: r}))
	want := `::error file=oversell.yaml,line=15,title=oversell.yaml%3A broken::must return no row, and does: SELECT 100%25 :: x,%0Ay
::warning file=old.yaml,line=3,title=old.yaml%3A broken (before)::old
::error title=mine under rush%3A error::down
::warning file=b.yaml,line=1,title=b.yaml%3A inconclusive::nothing
::error file=src/a%3Ab%2Cc.js,line=42,title=oversell.yaml%3A broken::The program's log names this line: at buy (src/a:b,c.js:42:7)%0Amust return no row, and does: SELECT 100%25 :: x,%0Ay
`
	expect.Equal(t, log.String(), want)
}

// TestManyAnnotations: GitHub drops the annotations of a level after the tenth, so the log says that there are
// more.
func TestManyAnnotations(t *testing.T) {
	t.Parallel()
	var r result.Result
	for n := range 13 {
		r.Checks = append(r.Checks, result.Check{Name: fmt.Sprint(n), Status: result.Broken})
	}
	var log bytes.Buffer
	err := annotate(Publication{Log: &log, Result: r})
	if err == nil || !strings.HasPrefix(err.Error(), "3 more annotations are left out") || strings.Count(log.String(), "\n") != mostAnnotations {
		t.Errorf("%v\n%s", err, &log)
	}
}

// TestStepSummary: the summary is appended, and cut at the limit of the step.
func TestStepSummary(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("| a line of the summary |\n", 1000) + "```\ncode\n"
	for _, c := range []struct {
		name    string
		earlier int
		cut     bool
	}{{"empty", 0, false}, {"some", 1000, false}, {"nearly full", mostSummary - 2000, true}, {"full", mostSummary, true}} {
		t.Run(c.name, func(t *testing.T) {
			path := write(t, "summary", strings.Repeat("x", c.earlier))
			err := stepSummary(Publication{Env: env("GITHUB_STEP_SUMMARY=" + path), Summary: long})
			text := read(t, path)
			switch {
			case len(text) > mostSummary:
				t.Errorf("%d bytes", len(text))
			case c.earlier == mostSummary:
				if err == nil || !strings.Contains(err.Error(), "no room left") || strings.Contains(err.Error(), "\n") {
					t.Error(err)
				}
			case err != nil:
				t.Error(err)
			case c.cut != strings.Contains(text, "The rest is left out") || !c.cut && !strings.HasSuffix(text, long):
				t.Errorf("cut: %v, want %v", !c.cut, c.cut)
			}
		})
	}
	expect.NoError(t, stepSummary(Publication{Env: env()}))
}

// TestCut: Markdown ends at the end of a line, and outside of a block of code.
func TestCut(t *testing.T) {
	t.Parallel()
	expect.Equal(t, cut("short", 5, "note"), "short")
	text := "a line\n```\ncode 1\ncode 2\n```\nafter\n"
	for most := 10; most < len(text); most++ {
		got := cut(text, most, "note")
		if len(got) > most || !strings.HasSuffix(got, "note") || strings.Count(got, "```")%2 != 0 {
			t.Errorf("%d: %q", most, got)
		}
	}
}

// A forge is GitHub's REST API for comments.
type forge struct {
	*httptest.Server
	comments []map[string]any
	status   int // status of each answer; 0: the correct one
	calls    []string
}

func newForge(t *testing.T, status int) *forge {
	t.Helper()
	f := &forge{status: status}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *forge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.calls = append(f.calls, r.Method+" "+r.URL.Path)
	const list = "/repos/o/r/issues/7/comments"
	var sent struct{ Body string }
	_ = json.NewDecoder(r.Body).Decode(&sent)
	switch {
	case f.status != 0:
		w.WriteHeader(f.status)
	case r.Header.Get("Authorization") != "Bearer secret" || len(sent.Body) > mostComment:
		w.WriteHeader(http.StatusUnprocessableEntity)
	case r.Method == http.MethodGet && r.URL.Path == list:
		page, size := 1, 100
		_, _ = fmt.Sscanf(r.URL.RawQuery, "per_page=%d&page=%d", &size, &page)
		first := min((page-1)*size, len(f.comments))
		_ = json.NewEncoder(w).Encode(f.comments[first:min(first+size, len(f.comments))])
	case r.Method == http.MethodPost && r.URL.Path == list:
		f.comments = append(f.comments, map[string]any{"id": 1000 + len(f.comments), "body": sent.Body})
		w.WriteHeader(http.StatusCreated)
	case r.Method == http.MethodPatch:
		for _, c := range f.comments {
			if r.URL.Path == fmt.Sprintf("/repos/o/r/issues/comments/%v", c["id"]) {
				c["body"] = sent.Body
				return
			}
		}
		w.WriteHeader(http.StatusNotFound)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (f *forge) publication(t *testing.T, summary string) Publication {
	event := write(t, "event.json", `{"action": "opened", "pull_request": {"number": 7}}`)
	return Publication{
		Env:    env("GITHUB_TOKEN=secret", "GITHUB_API_URL="+f.URL, "GITHUB_REPOSITORY=o/r", "GITHUB_EVENT_PATH="+event, "GITHUB_WORKFLOW=CI", "GITHUB_JOB=shop"),
		Folder: "oversell-ci", Summary: summary, Result: broken(),
	}
}

// TestComment: the first run creates the comment, later ones update it, and people's comments stay.
func TestComment(t *testing.T) {
	t.Parallel()
	f := newForge(t, 0)
	for n := range 150 {
		f.comments = append(f.comments, map[string]any{"id": n + 1, "body": "of a person"})
	}
	for _, summary := range []string{"first", "second", strings.Repeat("a long line\n", 10_000)} {
		require.NoError(t, comment(t.Context(), f.publication(t, summary)))
	}
	last := fmt.Sprint(f.comments[len(f.comments)-1]["body"])
	if len(f.comments) != 151 || !strings.HasPrefix(last, "<!-- shop ci: CI/shop oversell-ci  -->\na long line\n") || !strings.Contains(last, "The rest is left out") {
		t.Errorf("%d comments, the last %.80q", len(f.comments), last)
	}
	if methods := slices.DeleteFunc(f.calls, func(call string) bool { return strings.HasPrefix(call, "GET ") }); len(methods) != 3 || !strings.HasPrefix(methods[0], "POST ") || !strings.HasPrefix(methods[2], "PATCH ") {
		t.Error(methods)
	}
	p := f.publication(t, "of another shard")
	p.Result.Shard = "2/3"
	if err := comment(t.Context(), p); err != nil || len(f.comments) != 152 {
		t.Errorf("a shard: %v, %d comments", err, len(f.comments))
	}
	p.Folder = "other-ci"
	if err := comment(t.Context(), p); err != nil || len(f.comments) != 153 {
		t.Errorf("a second step: %v, %d comments", err, len(f.comments))
	}
}

// TestNoComment: without permission, the error is one line. Without a pull request, there is no error.
func TestNoComment(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound} {
		f := newForge(t, status)
		if err := comment(t.Context(), f.publication(t, "text")); err != errNoPermission || strings.Contains(err.Error(), "\n") {
			t.Errorf("%d: %v", status, err)
		}
	}
	f := newForge(t, http.StatusBadGateway)
	if err := comment(t.Context(), f.publication(t, "text")); err == nil || !strings.HasPrefix(err.Error(), "no comment: GET ") {
		t.Error(err)
	}
	f = newForge(t, 0)
	with := f.publication(t, "text").Env
	for _, c := range []struct{ name, value string }{
		{"GITHUB_TOKEN", ""},
		{"GITHUB_EVENT_PATH", ""},
		{"GITHUB_REPOSITORY", ""},
		{"GITHUB_EVENT_PATH", write(t, "push.json", `{"ref": "refs/heads/main"}`)},
	} {
		p := Publication{Env: func(name string) string {
			if name == c.name {
				return c.value
			}
			return with(name)
		}}
		if err := comment(t.Context(), p); err != nil || len(f.calls) > 0 {
			t.Errorf("%s=%s: %v, %v", c.name, c.value, err, f.calls)
		}
	}
}

// TestPublish: each system gets its own output, and a failure in one does not affect the others.
func TestPublish(t *testing.T) {
	folder, agent := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(agent, "buildkite-agent"), []byte("#!/bin/sh\necho \"$@\" > "+folder+"/called; cat >> "+folder+"/called\n"), 0o700))
	t.Setenv("PATH", agent+":"+os.Getenv("PATH"))
	summary := filepath.Join(folder, "step")
	var log bytes.Buffer
	r := broken()
	r.Exit = 1
	errs := Publish(t.Context(), Publication{
		Env: env("GITHUB_ACTIONS=true", "GITHUB_STEP_SUMMARY="+summary, "GITHUB_OUTPUT="+filepath.Join(folder, "no", "output"), "GITLAB_CI=true", "BUILDKITE=true", "BUILDKITE_STEP_ID=0193-ab"),
		Log: &log, Folder: folder, Summary: "the summary\n", Result: r,
	})
	if len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), "GitHub: open ") {
		t.Error(errs)
	}
	if !strings.HasPrefix(log.String(), "::error ") || read(t, summary) != "the summary\n" {
		t.Errorf("%s\n%s", &log, read(t, summary))
	}
	expect.Equal(t, read(t, filepath.Join(folder, "called")), "annotate --style error --context shop-ci 0193-ab "+folder+"\nthe summary\n")
	var issues []map[string]any
	if err := json.Unmarshal([]byte(read(t, filepath.Join(folder, "gl-code-quality.json"))), &issues); err != nil || len(issues) != 1 {
		t.Errorf("%v, %v", issues, err)
	}
	if errs := Publish(t.Context(), Publication{Env: env(), Log: &log, Folder: folder}); errs != nil {
		t.Error(errs)
	}
}

// TestRoot: paths are relative to the system's own checkout, or else to the repository.
func TestRoot(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	inner := filepath.Join(top, "repository", "services", "shop")
	for _, folder := range []string{inner, filepath.Join(top, "repository", ".git"), filepath.Join(top, "other")} {
		require.NoError(t, os.MkdirAll(folder, 0o700))
	}
	t.Chdir(inner)
	for _, c := range []struct {
		env  Env
		want string
	}{
		{env(), filepath.Join(top, "repository")},
		{env("GITHUB_ACTIONS=true", "GITHUB_WORKSPACE="+top), top},
		{env("GITLAB_CI=true", "CI_PROJECT_DIR="+inner), inner},
		{env("GITHUB_ACTIONS=true", "GITHUB_WORKSPACE="+filepath.Join(top, "other")), filepath.Join(top, "repository")},
	} {
		if got, err := Root(c.env); err != nil || got != c.want {
			t.Errorf("%s, %v; want %s", got, err, c.want)
		}
	}
}
