package main

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestInitRefused: an existing file stays, and a file with placeholders starts nothing.
func TestInitRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(args ...string) (int, string, string) {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), args, &stdout, &stderr)
		return code, stdout.String(), stderr.String()
	}
	if code, stdout, stderr := at("init", dir); code != 0 || !strings.Contains(stdout, "to fill in: run (line ") {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	file := filepath.Join(dir, "oversell.yaml")
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"init", dir}, regexp.QuoteMeta(file) + ` exists and was left unchanged; add --force to replace it`},
		{[]string{"init", dir, dir}, `init takes one folder \(got 2 arguments\)`},
		{[]string{"explore", "--app", file, "--app-check"}, regexp.QuoteMeta(file) + `:\d+: replace FILL_IN in run \(line \d+\), mysql \(line \d+\), buyer \(line \d+\), reset.sql`},
		{[]string{"verify", "--app", file}, `replace FILL_IN in run`},
	} {
		code, stdout, stderr := at(c.args...)
		if code != exitHarness || stdout != "" || strings.Count(stderr, "\n") != 1 || !regexp.MustCompile(c.says).MatchString(stderr) {
			t.Errorf("%q: exit %d: %s%s; want %s", c.args, code, stdout, stderr, c.says)
		}
	}
	if code, stdout, stderr := at("init", dir, "--output", "-"); code != 0 || !strings.HasPrefix(stdout, "# Drafted by shop init") || !strings.HasPrefix(stderr, "to fill in: run") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
}
