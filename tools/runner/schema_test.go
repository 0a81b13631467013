package runner

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestSchemas checks the job files against the schemas that GitHub and GitLab publish. Each schema accepts
// our files, and refuses them with a planted mistake.
func TestSchemas(t *testing.T) {
	t.Parallel()
	workflow := func(t *testing.T, text string) (int, string) {
		return checkSchema(t, "workflow", text)
	}
	action := func(t *testing.T, text string) (int, string) {
		return checkSchema(t, "action", text)
	}
	gitlab := func(t *testing.T, text string) (int, string) {
		m := newMachine(t)
		return m.run(t, node.repository(t, "naive", ".gitlab-ci.yml", text), m.environ(), nodeModule("gitlab-ci-local"), "--list")
	}
	for _, c := range []struct {
		file         string
		check        func(t *testing.T, text string) (code int, out string)
		right, wrong string
	}{
		{"action.yml", action, "      shell: bash\n", ""},
		{"action.yml", action, "continue-on-error:", "continue-on-errors:"},
		{"action.yml", action, "strategy.job-index", "strategi.job-index"},
		{"docs/ci/github-actions.yml", workflow, "runs-on:", "run-on:"},
		{"docs/ci/fork-github-actions.yml", workflow, "timeout-minutes:", "timeout:"},
		{"docs/ci/gitlab-ci.yml", gitlab, "when: always", "when: sometimes"},
		{"docs/ci/fork-gitlab-ci.yml", gitlab, "rules:\n", "rule:\n"},
	} {
		t.Run(c.file+" "+c.wrong, func(t *testing.T) {
			t.Parallel()
			text := read(t, filepath.Join(root(), c.file))
			if code, out := c.check(t, text); code != 0 {
				t.Errorf("exit code %d\n%s", code, out)
			}
			planted := strings.Replace(text, c.right, c.wrong, 1)
			if planted == text {
				t.Fatalf("no %q in the file", c.right)
			}
			if code, _ := c.check(t, planted); code == 0 {
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
	nodeModule("")
	file := filepath.Join(t.TempDir(), "file.yml")
	write(t, file, text)
	return newMachine(t).run(t, ".", newMachine(t).environ(), "node", "check.mjs", kind, file)
}
