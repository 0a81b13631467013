package runner

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPageShowsJobs: the page shows each complete job of docs/ci, and the README shows its three steps.
// The other tests run these files, so they also test the pages.
func TestPageShowsJobs(t *testing.T) {
	t.Parallel()
	page := read(t, filepath.Join(root(), "docs/guides/add-to-ci.md"))
	shown := map[string]bool{}
	for _, m := range regexp.MustCompile("(?s)\\]\\(\\.\\./ci/([^)]+)\\)[^`]*(?:`[^`\n]+`[^`]*)?\n\n```(?:yaml|groovy)\n(.*?)```").FindAllStringSubmatch(page, -1) {
		shown[m[1]] = true
		if want := read(t, filepath.Join(root(), "docs/ci", m[1])); m[2] != want {
			t.Errorf("docs/ci/%s is\n%s\nand the page shows\n%s", m[1], want, m[2])
		}
	}
	files, err := os.ReadDir(filepath.Join(root(), "docs/ci"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasPrefix(f.Name(), "fork-") && !shown[f.Name()] {
			t.Errorf("the page does not show docs/ci/%s", f.Name())
		}
	}
	_, steps, _ := strings.Cut(read(t, filepath.Join(root(), "docs/ci/github-actions.yml")), "steps:\n")
	if !strings.Contains(read(t, filepath.Join(root(), "README.md")), "```yaml\n"+steps+"```\n") {
		t.Errorf("the README does not show\n%s", steps)
	}
}
