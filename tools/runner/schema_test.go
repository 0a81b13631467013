package runner

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestSchemas checks the files for GitHub, and the workflows of this repository, against the schemas that
// GitHub publishes. Each schema refuses a planted mistake.
func TestSchemas(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root(), ".github/workflows/*.yml"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	files = append(files, filepath.Join(root(), "docs/ci/github-actions.yml"), filepath.Join(root(), "docs/ci/fork-github-actions.yml"))
	for _, file := range files {
		if code, out := checkSchema(t, "workflow", read(t, file)); code != 0 {
			t.Errorf("%s: exit code %d\n%s", file, code, out)
		}
	}
	action := read(t, filepath.Join(root(), "action.yml"))
	if code, out := checkSchema(t, "action", action); code != 0 {
		t.Errorf("action.yml: exit code %d\n%s", code, out)
	}
	workflow := read(t, filepath.Join(root(), "docs/ci/github-actions.yml"))
	for _, c := range []struct{ kind, text, right, wrong string }{
		{"action", action, "      shell: bash\n", ""},
		{"action", action, "strategy.job-index", "strategi.job-index"},
		{"workflow", workflow, "runs-on:", "run-on:"},
	} {
		planted := strings.Replace(c.text, c.right, c.wrong, 1)
		if planted == c.text {
			t.Fatalf("no %q in the file", c.right)
		}
		if code, _ := checkSchema(t, c.kind, planted); code == 0 {
			t.Errorf("the schema accepts %q instead of %q", c.wrong, c.right)
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
