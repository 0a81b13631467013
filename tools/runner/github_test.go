package runner

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// act returns nektos/act, built from the tool line of go.mod.
var act = sync.OnceValue(func() string {
	path := filepath.Join(temporary, "act")
	if out, err := exec.Command("go", "build", "-o", path, "github.com/nektos/act").CombinedOutput(); err != nil {
		panic(string(out))
	}
	return path
})

// github runs the push event of the repository's workflows. act executes the steps on this machine.
func (m machine) github(t *testing.T, repository string, env ...string) result {
	t.Helper()
	local := filepath.Join(root(), "tools/runner/actions")
	command := []string{
		act(), "push", "--json", "--strict", "--action-offline-mode", "--no-cache-server", "-P", "ubuntu-24.04=-self-hosted",
		"--local-repository", "oversell/oversell@v1=" + tree(t), "--local-repository", "oversell/oversell@main=" + tree(t),
		"--local-repository", "github/codeql-action@v3=" + filepath.Join(local, "codeql-action"),
		"-s", "GITHUB_TOKEN=none",
	}
	for _, name := range []string{"setup-go@v5", "cache@v4", "upload-artifact@v4"} {
		folder, _, _ := strings.Cut(name, "@")
		command = append(command, "--local-repository", "actions/"+name+"="+filepath.Join(local, folder))
	}
	start := time.Now()
	code, out := m.run(t, repository, m.job(env...), command...)
	r := result{code: code, took: time.Since(start)}
	lines := bufio.NewScanner(strings.NewReader(out))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var line struct {
			Msg, Command, Content, Arg string
			KvPairs                    map[string]string
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			line.Msg = lines.Text()
		}
		r.log += strings.TrimRight(line.Msg, "\r\n") + "\n"
		switch line.Command {
		case "summary":
			r.summary += line.Content
		case "error", "warning", "notice":
			r.annotations = append(r.annotations, annotation{line.Command, line.KvPairs["file"], line.KvPairs["line"], line.Arg})
		}
	}
	if folders, _ := filepath.Glob(filepath.Join(m.standin, "artifacts/*")); len(folders) > 0 {
		r.files = folders[0]
	}
	return r
}

var trees = struct {
	sync.Once
	dir string
}{}

// tree returns a copy of the files that git knows, in place of the checkout of the action.
func tree(t *testing.T) string {
	t.Helper()
	trees.Do(func() {
		trees.dir = filepath.Join(temporary, "oversell")
		script := `mkdir -p "$1" && git ls-files -z | xargs -0 cp --parents -t "$1"`
		cmd := exec.Command("bash", "-c", script, "copy", trees.dir)
		cmd.Dir = root()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	})
	return trees.dir
}

const workflow = ".github/workflows/oversell.yml"

func TestGitHub(t *testing.T) {
	job := read(t, filepath.Join(root(), "docs/ci/github-actions.yml"))
	for _, e := range []example{node, python, golang} {
		for mode, want := range verdicts {
			t.Run(e.language+"/"+mode, func(t *testing.T) {
				e.prepare = strings.Replace(e.prepare, "apt-get", "sudo apt-get", 1)
				repository := e.repository(t, mode, workflow, job)
				m := newMachine(t)
				r := m.github(t, repository)
				if c := r.judge(t, mode); c.Unchanged != nil {
					t.Errorf("the first push takes its result from %v", c.Unchanged)
				}
				if _, err := os.Stat(filepath.Join(m.standin, "sarif/oversell.sarif")); err != nil {
					t.Errorf("code scanning received nothing: %v\n%s", err, r.log)
				}
				if want.exit == 0 {
					if len(r.annotations) > 0 {
						t.Errorf("annotations %v", r.annotations)
					}
					m.pushUnchanged(t, repository)
					return
				}
				yaml, _, _ := strings.Cut(read(t, filepath.Join(repository, "oversell.yaml")), "HAVING count(*) > 1")
				line := strconv.Itoa(1 + strings.Count(yaml, "\n"))
				if len(r.annotations) != 1 || r.annotations[0].level != "error" || r.annotations[0].file != "oversell.yaml" || r.annotations[0].line != line {
					t.Errorf("annotations %v; want one error at oversell.yaml:%s", r.annotations, line)
				}
			})
		}
	}
}

// pushUnchanged pushes the same content again. The job must then take its result from the cache.
func (m machine) pushUnchanged(t *testing.T, repository string) {
	t.Helper()
	git(t, repository, "commit", "-q", "--allow-empty", "-m", "nothing")
	if err := os.RemoveAll(filepath.Join(m.standin, "artifacts")); err != nil {
		t.Fatal(err)
	}
	r := m.github(t, repository)
	if c := r.judge(t, "for-update"); c.Unchanged == nil {
		t.Errorf("the second run searched again\n%s", r.log)
	}
}

// TestGitHubWithout: without code scanning, or without a release, the job gives the right verdict.
// Without an oversell.yaml, it fails and says what to do.
func TestGitHubWithout(t *testing.T) {
	job := read(t, filepath.Join(root(), "docs/ci/github-actions.yml"))
	t.Run("code scanning", func(t *testing.T) {
		r := newMachine(t).github(t, node.repository(t, "for-update", workflow, job), "STANDIN_NO_CODE_SCANNING=1")
		r.judge(t, "for-update")
		if !strings.Contains(r.log, "Resource not accessible by integration") {
			t.Errorf("the stand-in did not refuse the upload\n%s", r.log)
		}
	})
	t.Run("release", func(t *testing.T) {
		commit := strings.Replace(job, "oversell/oversell@v1", "oversell/oversell@main", 1)
		r := newMachine(t).github(t, node.repository(t, "naive", workflow, commit))
		r.judge(t, "naive")
		if !strings.Contains(r.log, "no release main for Linux") {
			t.Errorf("the release was found\n%s", r.log)
		}
	})
	t.Run("file", func(t *testing.T) {
		repository := node.repository(t, "naive", workflow, job)
		git(t, repository, "rm", "-q", "oversell.yaml")
		r := newMachine(t).github(t, repository)
		if r.code == 0 || strings.Count(r.log, "there is no oversell.yaml here; write one with shop init") != 1 {
			t.Errorf("exit code %d\n%s", r.code, r.log)
		}
	})
}
