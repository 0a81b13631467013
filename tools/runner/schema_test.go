package runner

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestSchemas checks the files for GitHub against the schemas that GitHub publishes. Each schema accepts
// our files, and refuses them with a planted mistake.
func TestSchemas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file, kind   string
		right, wrong string
	}{
		{"action.yml", "action", "      shell: bash\n", ""},
		{"action.yml", "action", "continue-on-error:", "continue-on-errors:"},
		{"action.yml", "action", "strategy.job-index", "strategi.job-index"},
		{"docs/ci/github-actions.yml", "workflow", "runs-on:", "run-on:"},
		{"docs/ci/fork-github-actions.yml", "workflow", "timeout-minutes:", "timeout:"},
	} {
		t.Run(c.file+" "+c.wrong, func(t *testing.T) {
			t.Parallel()
			text := read(t, filepath.Join(root(), c.file))
			if code, out := checkSchema(t, c.kind, text); code != 0 {
				t.Errorf("exit code %d\n%s", code, out)
			}
			planted := strings.Replace(text, c.right, c.wrong, 1)
			if planted == text {
				t.Fatalf("no %q in the file", c.right)
			}
			if code, _ := checkSchema(t, c.kind, planted); code == 0 {
				t.Errorf("the schema accepts %q instead of %q", c.wrong, c.right)
			}
		})
	}
}

// TestOwnWorkflows checks the workflows of this repository.
func TestOwnWorkflows(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root(), ".github/workflows/*.yml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if code, out := checkSchema(t, "workflow", read(t, file)); code != 0 {
			t.Errorf("%s: exit code %d\n%s", file, code, out)
		}
	}
}

func checkSchema(t *testing.T, kind, text string) (code int, out string) {
	t.Helper()
	installNodeModules()
	file := filepath.Join(t.TempDir(), "file.yml")
	write(t, file, text)
	return newMachine(t).run(t, ".", newMachine(t).environ(), "node", "check.mjs", kind, file)
}
