//go:build unix

package docs_test

import (
	"cmp"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
)

// TestArticles runs the command of each row of docs/reference/articles.md, and looks for the word that
// the row names. A row with go test names a test that passes and is not skipped.
func TestArticles(t *testing.T) {
	tier.Test(t, "forty searches, bursts and cells")
	page := shoptest.Read(t, "docs/reference/articles.md")
	row := regexp.MustCompile("(?m)^- [^\n]*?: `((?:shop|go|loadtest/)[^`\n]* [^`\n]*)`(?:: `([^`\n]+)`)?$")
	rows := row.FindAllStringSubmatch(page, -1)
	if all, without := strings.Count(page, "\n- "), 2; all != 65 || len(rows) != all-without {
		t.Errorf("%d of %d rows have a command; want all of 65 but %d", len(rows), all, without)
	}
	for _, r := range rows {
		words, want := strings.Fields(r[1]), r[2]
		t.Run(r[1], func(t *testing.T) {
			if words[0] != "shop" || slices.Contains(words, "local") {
				tier.Soak(t, "the rows that need servers or the Go tool")
			}
			if want == ", 0 violations" {
				tier.Soak(t, "internal/explore/promisetest has these searches")
			}
			t.Parallel()
			switch words[0] {
			case "shop":
				words[0] = shoptest.Path(t)
			case "go":
				words, want = append(words, "-v", "-count=1"), cmp.Or(want, "--- PASS")
			}
			c := exec.CommandContext(t.Context(), words[0], words[1:]...)
			c.Dir, c.Env = "..", os.Environ()
			out, err := c.CombinedOutput()
			if want == "" || !strings.Contains(string(out), want) || c.ProcessState.ExitCode() == shoptest.Harness {
				t.Errorf("%v; it does not print %q:\n%s", err, want, out)
			}
		})
	}
}
