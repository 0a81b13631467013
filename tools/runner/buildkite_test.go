package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/buildkite/go-pipeline"
	"github.com/buildkite/go-pipeline/warning"
)

// buildkiteEnv is the environment of a build, for the interpolation of the pipeline too.
type buildkiteEnv map[string]string

func (e buildkiteEnv) Get(name string) (string, bool) { value, ok := e[name]; return value, ok }
func (e buildkiteEnv) Set(name, value string)         { e[name] = value }

// buildkite parses the pipeline as `buildkite-agent pipeline upload` does, and runs the command of
// its only step as the agent does: as a script that ends with the first command that fails.
func (m machine) buildkite(t *testing.T, repository string) result {
	t.Helper()
	env := buildkiteEnv{
		"BUILDKITE": "true", "CI": "true", "BUILDKITE_BRANCH": "main", "BUILDKITE_BUILD_NUMBER": "1",
		"BUILDKITE_BUILD_CHECKOUT_PATH": repository, "BUILDKITE_PIPELINE_SLUG": "shop",
	}
	file, err := os.Open(filepath.Join(repository, ".buildkite/pipeline.yml"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	p, err := pipeline.Parse(file)
	if w := warning.As(err); w != nil || err != nil {
		t.Fatalf("the pipeline is not fully understood: %v", err)
	}
	if err := p.Interpolate(env, false); err != nil {
		t.Fatal(err)
	}
	if len(p.Steps) != 1 {
		t.Fatalf("%d steps", len(p.Steps))
	}
	step, ok := p.Steps[0].(*pipeline.CommandStep)
	if !ok {
		t.Fatalf("a step of an unknown kind: %#v", p.Steps[0])
	}
	for key := range step.RemainingFields {
		if key != "artifact_paths" {
			t.Errorf("unknown key %s of a command step", key)
		}
	}
	environ := m.job()
	for name, value := range env {
		environ = append(environ, name+"="+value)
	}
	start := time.Now()
	code, out := m.run(t, repository, environ, "bash", "-e", "-o", "pipefail", "-c", step.Command)
	r := result{code: code, log: out, took: time.Since(start)}
	paths, _ := step.RemainingFields["artifact_paths"].(string)
	r.files = filepath.Join(repository, strings.TrimSuffix(paths, "/**/*"))
	if summary, err := os.ReadFile(filepath.Join(m.standin, "annotation.md")); err == nil {
		r.summary = string(summary)
	}
	return r
}

func TestBuildkite(t *testing.T) {
	t.Parallel()
	job := read(t, filepath.Join(root(), "docs/ci/buildkite.yml"))
	for mode := range verdicts {
		t.Run(mode, func(t *testing.T) {
			newMachine(t).buildkite(t, node.repository(t, mode, ".buildkite/pipeline.yml", job)).judge(t, mode)
		})
	}
}
