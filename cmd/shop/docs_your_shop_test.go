package main

import (
	"bufio"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/tier"
)

// pageBlock returns the fenced block of a page that contains a text, without its fences.
func pageBlock(t *testing.T, page, contains string) string {
	t.Helper()
	for _, block := range regexp.MustCompile("(?s)```(?:text|mermaid)\n(.*?)\n```").FindAllStringSubmatch(readPage(t, "docs/"+page), -1) {
		if strings.Contains(block[1], contains) {
			return block[1]
		}
	}
	t.Fatalf("docs/%s has no block with %q", page, contains)
	return ""
}

// TestGuideOutput: explore --app prints what the pages show, apart from versions and times.
func TestGuideOutput(t *testing.T) {
	tier.Soak(t, "starts programs and servers; TestApp has the same programs")
	t.Parallel()
	varies := regexp.MustCompile(`MariaDB [\d.]+|[\d.]+ s \(\d+/s\)|\d+ ms with every`)
	for _, c := range []struct {
		page, contains, file string
		needs, args          []string
		code                 int
	}{
		{"guides/test-your-shop.md", "sequenceDiagram", "node/naive.yaml", []string{"node", "npm"}, []string{"--format", "mermaid"}, exitBroken},
		{"guides/test-your-shop.md", "node-for-update", "node/for-update.yaml", []string{"node", "npm"}, nil, 0},
		{"design/programs.md", "buyer 1 alone", "python/naive.yaml", []string{"python3"}, []string{"--app-check"}, 0},
	} {
		t.Run(c.file, func(t *testing.T) {
			want := varies.ReplaceAllString(pageBlock(t, c.page, c.contains), "")
			file := appCase{file: c.file, needs: c.needs}.need(t)
			code, stdout, stderr := exploreApp(t, file, c.args...)
			if got := varies.ReplaceAllString(stdout, ""); code != c.code || !strings.Contains(got, want) {
				t.Errorf("exit %d, want %d with\n%s\ngot\n%s%s", code, c.code, want, got, stderr)
			}
		})
	}
}

// TestGuideTarget: the example in Python oversells as the guide shows, and holds with its lock.
func TestGuideTarget(t *testing.T) {
	tier.Soak(t, "starts programs and servers; TestVerifyTarget has a broken and a sound service")
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	broken := pageBlock(t, "guides/test-your-shop.md", "! oversold")
	for mode, c := range map[string]struct {
		table string
		code  int
	}{
		"naive": {broken, exitBroken},
		"":      {strings.ReplaceAll(broken[strings.Index(broken, " mine"):], "! oversold", "holds"), 0},
	} {
		cmd := exec.Command(python, "../../examples/http/shop.py", "0", mode)
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
		code, text, stderr := exitOfCommand(t, plainCommand(t, "verify", "--target", strings.TrimSpace(url), "--strategy", "mine", "--no-idempotency-keys"))
		spaces := regexp.MustCompile(` +`)
		if code != c.code || !strings.Contains(spaces.ReplaceAllString(text, " "), spaces.ReplaceAllString(c.table, " ")) {
			t.Errorf("%q: exit %d, want %d with\n%s\ngot\n%s%s", mode, code, c.code, c.table, text, stderr)
		}
	}
}
