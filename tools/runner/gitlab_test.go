package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// gitlab runs the jobs of .gitlab-ci.yml on this machine. The runner says what a GitLab runner says.
func (m machine) gitlab(t *testing.T, repository string, env ...string) result {
	t.Helper()
	start := time.Now()
	code, out := m.run(t, repository, m.job(env...), nodeModule("gitlab-ci-local"),
		"--force-shell-executor", "--shell-isolation", "--no-color", "--variable", "GITLAB_CI=true")
	r := result{code: code, log: out, took: time.Since(start)}
	r.files = filepath.Join(repository, ".gitlab-ci-local/artifacts/oversell/oversell-ci")
	if summary, err := os.ReadFile(filepath.Join(r.files, "summary.md")); err == nil {
		r.summary = string(summary)
	}
	return r
}

func TestGitLab(t *testing.T) {
	job := read(t, filepath.Join(root(), "docs/ci/gitlab-ci.yml"))
	for _, e := range languages() {
		for mode := range verdicts {
			t.Run(e.language+"/"+mode, func(t *testing.T) {
				r := newMachine(t).gitlab(t, e.repository(t, mode, ".gitlab-ci.yml", job))
				r.judge(t, mode)
				quality := read(t, filepath.Join(r.files, "gl-code-quality.json"))
				if strings.Contains(quality, `"oversell.yaml"`) != (mode == "naive") {
					t.Errorf("gl-code-quality.json is %s", quality)
				}
			})
		}
	}
}
