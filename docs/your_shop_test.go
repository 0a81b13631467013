package docs_test

import (
	"bufio"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
)

// TestGuideDiagram: explore --app draws the diagram of the guide.
func TestGuideDiagram(t *testing.T) {
	tier.Soak(t, "no other test has it: it compares the page with a search of a program")
	t.Parallel()
	want := shoptest.Block(t, "guides/test-your-shop.md", "sequenceDiagram")
	file := shoptest.Example(t, "node/naive.yaml")
	if code, stdout, stderr := shoptest.Run(t, "explore", "--app", file, "--format", "mermaid"); code != shoptest.Broken || !strings.Contains(stdout, want) {
		t.Errorf("exit %d, want %d with\n%s\ngot\n%s%s", code, shoptest.Broken, want, stdout, stderr)
	}
}

// TestGuideTarget: the example in Python oversells as the guide shows, and holds with its lock.
func TestGuideTarget(t *testing.T) {
	tier.Soak(t, "no other test has it: it starts the example in Python")
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	broken := shoptest.Block(t, "guides/test-your-shop.md", "! oversold")
	for mode, c := range map[string]struct {
		table string
		code  int
	}{
		"naive": {broken, shoptest.Broken},
		"":      {strings.ReplaceAll(broken[strings.Index(broken, " mine"):], "! oversold", "holds"), 0},
	} {
		cmd := exec.Command(python, "../examples/http/shop.py", "0", mode)
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		url, err := bufio.NewReader(stdout).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		code, text, stderr := shoptest.Run(t, "verify", "--target", strings.TrimSpace(url), "--strategy", "mine", "--no-idempotency-keys")
		spaces := regexp.MustCompile(` +`)
		if code != c.code || !strings.Contains(spaces.ReplaceAllString(text, " "), spaces.ReplaceAllString(c.table, " ")) {
			t.Errorf("%q: exit %d, want %d with\n%s\ngot\n%s%s", mode, code, c.code, c.table, text, stderr)
		}
	}
}
