package main

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestGlossary: the terms are in alphabetic order, each once and in one line, and the example prints
// what the page shows.
func TestGlossary(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/reference/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	var terms []string
	for _, m := range regexp.MustCompile(`(?m)^### (.+)\n\n(.+)\n\n`).FindAllSubmatch(text, -1) {
		terms = append(terms, strings.ToLower(string(m[1])))
	}
	sorted := slices.Compact(slices.Sorted(slices.Values(terms)))
	if headings := bytes.Count(text, []byte("\n### ")); !slices.Equal(terms, sorted) || len(terms) != headings {
		t.Errorf("%d terms of %d headings; want each once, with one line, in this order:\n%s", len(terms), headings, strings.Join(sorted, "\n"))
	}
	command := regexp.MustCompile(`(?m)^\./shop (.+)$`).FindSubmatch(text)
	output := regexp.MustCompile("(?s)```text\n(.+?)```").FindSubmatch(text)
	if command == nil || output == nil {
		t.Fatal("the page has no command, or no output")
	}
	var out, errs bytes.Buffer
	if code := run(t.Context(), strings.Fields(string(command[1])), &out, &errs); code != exitBroken || !strings.HasSuffix(out.String(), string(output[1])) {
		t.Errorf("exit %d, want %d at the end of\n%s%swant\n%s", code, exitBroken, &out, &errs, output[1])
	}
}
