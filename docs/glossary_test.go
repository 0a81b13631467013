package docs_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/shoptest"
)

// TestGlossary: the terms are in alphabetic order, each once and in one line, and the page shows the
// output of its example.
func TestGlossary(t *testing.T) {
	t.Parallel()
	text := shoptest.Read(t, "docs/reference/glossary.md")
	var terms []string
	for _, m := range regexp.MustCompile(`(?m)^### (.+)\n\n(.+)\n\n`).FindAllStringSubmatch(text, -1) {
		terms = append(terms, strings.ToLower(m[1]))
	}
	sorted := slices.Compact(slices.Sorted(slices.Values(terms)))
	if headings := strings.Count(text, "\n### "); !slices.Equal(terms, sorted) || len(terms) != headings {
		t.Errorf("%d terms of %d headings; want each once, with one line, in this order:\n%s", len(terms), headings, strings.Join(sorted, "\n"))
	}
	command := regexp.MustCompile(`(?m)^\./shop (.+)$`).FindStringSubmatch(text)
	output := regexp.MustCompile("(?s)```text\n(.+?)```").FindStringSubmatch(text)
	if command == nil || output == nil {
		t.Fatal("the page has no command, or no output")
	}
	if out := outputOf(t, command[1], shoptest.Broken); !strings.HasSuffix(out, output[1]) {
		t.Errorf("got\n%s\nwant at the end\n%s", out, output[1])
	}
}
