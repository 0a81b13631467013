package locktest_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/tier"
)

// TestReadme: the test that README.md shows is the one of testdata/ours. It fails for the lock that
// releases with DEL, with the failure that the page shows, and passes for the fixed lock.
func TestReadme(t *testing.T) {
	tier.Test(t, "it builds a module")
	t.Parallel()
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	source, err := os.ReadFile("testdata/ours/lock_test.go")
	require.NoError(t, err)
	block := func(language string) string {
		found := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindSubmatch(page)
		if found == nil {
			t.Fatalf("README.md has no block of %s", language)
		}
		return string(found[1])
	}
	code := block("go")
	if !strings.HasSuffix(string(source), "\n"+code) || strings.Count(code, "\n") != 10 {
		t.Errorf("the test of README.md is not that of testdata/ours, or has not ten lines:\n%s", code)
	}
	want := block("text")
	varies := regexp.MustCompile(` \([\d.]+s\)|(check\.go):\d+`)
	for tags, fails := range map[string]bool{"": true, "fixed": false} {
		cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count=1", "-timeout=3m", "-tags", tags, "./testdata/ours")
		cmd.Env = append(os.Environ(), "REDIS_ADDR="+miniredis.RunT(t).Addr())
		out, err := cmd.CombinedOutput()
		got := varies.ReplaceAllString(string(out), "$1")
		if (err != nil) != fails || strings.Contains(got, want) != fails {
			t.Errorf("tags %q: %v\n%s; want the failure %v:\n%s", tags, err, got, fails, want)
		}
	}
}
