package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/require"
)

// TestPatches: each patch still applies and has a header. Together they cover every class of bugs
// and every family of strategies.
func TestPatches(t *testing.T) {
	patches, err := readPatches(".", nil)
	require.NoError(t, err)
	seen := map[string]bool{}
	bugs := 0
	for _, p := range patches {
		if err := p.apply(t.Context(), "../..", "--check"); err != nil {
			t.Error(err)
		}
		seen["class "+p.class], seen[p.area] = true, true
		if !p.control() {
			bugs++
		}
	}
	if bugs < 30 {
		t.Errorf("%d bugs, want 30 at least", bugs)
	}
	want := []string{"class control", "rlock", "shop", "audit"}
	for n := 1; n <= classes; n++ {
		want = append(want, "class "+strconv.Itoa(n))
	}
	for _, family := range families(t) {
		if !strings.HasPrefix(family, "no ") { // such a family has no protection that a bug could break
			want = append(want, family)
		}
	}
	for _, what := range want {
		if !seen[what] {
			t.Errorf("no patch of %s", what)
		}
	}
}

// families returns the families of strategies. Each has a generated page with its name in the title.
func families(t *testing.T) (all []string) {
	t.Helper()
	pages, err := filepath.Glob("../../docs/reference/strategies/*.md")
	require.NoError(t, err)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		title := regexp.MustCompile(`(?m)^# Lock strategies: (.+)$`).FindSubmatch(text)
		if title == nil {
			t.Fatalf("%s names no family", page)
		}
		all = append(all, string(title[1]))
	}
	if len(all) < 5 {
		t.Fatalf("%d families: %q", len(all), all)
	}
	return all
}

const header = "Class: 1\nWhere: SQL\nWrong: all\nSource: a book\nRun: shop rush --expect\nSays: stalled\n\ndiff --git a/x b/x\n"

func TestParse(t *testing.T) {
	if p, err := parse(header); err != nil || p.class != "1" || len(p.run) != 3 || !p.wantOutput.MatchString("is stalled") {
		t.Errorf("%+v, %v", p, err)
	}
	for name, c := range map[string]struct{ old, replaced, want string }{
		"no difference":    {"\ndiff ", "\n", "no difference"},
		"no source":        {"Source: a book\n", "", `"Source:"`},
		"no such class":    {"Class: 1", "Class: 16", "16"},
		"another command":  {"shop rush", "rm -r", "want shop or go test"},
		"another of go":    {"shop rush", "go run", "want shop or go test"},
		"no such pattern":  {"stalled", "(", "missing closing )"},
		"an empty command": {"shop rush --expect", " ", `"Run:"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(strings.Replace(header, c.old, c.replaced, 1))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestJudge(t *testing.T) {
	bug, err := parse(header)
	require.NoError(t, err)
	control := bug
	control.class = "control"
	for name, c := range map[string]struct {
		patch   patch
		code    int
		printed string
		ok      bool
	}{
		"caught":                 {bug, 1, "mutex is stalled", true},
		"caught as another":      {bug, 1, "mutex is oversold", false},
		"the harness failed":     {bug, 2, "stalled", false},
		"nothing shown":          {bug, 3, "stalled", false},
		"not caught":             {bug, 0, "holds", false},
		"a control, silent":      {control, 0, "not stalled", true},
		"a control, nothing ran": {control, 0, "", false},
		"a control, alarm":       {control, 1, "stalled", false},
	} {
		if verdict, ok := c.patch.judge(c.code, c.printed); ok != c.ok {
			t.Errorf("%s: %s, %t", name, verdict, ok)
		}
	}
}

// TestStalePatch: for a patch that no longer applies, the error is one line with its name.
func TestStalePatch(t *testing.T) {
	p := patch{name: "stale", file: "testdata/stale.patch"}
	err := p.apply(t.Context(), "../..", "--check")
	if err == nil || !strings.Contains(err.Error(), "testdata/stale.patch does not apply any more") {
		t.Errorf("%v", err)
	}
}
