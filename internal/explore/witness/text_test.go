package witness

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/oversell/oversell/internal/require"
)

// TestFoldedNotes: a long note is wrapped into lines, and a short note stays one line.
func TestFoldedNotes(t *testing.T) {
	long := "2 runs discarded: why" + strings.Repeat(" some words", 80)
	var out strings.Builder
	require.NoError(t, writeText(&out, Document{Notes: []string{"answers: 200 (2)", long}}))
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	for _, line := range lines {
		if len(line) > foldedWidth+2 {
			t.Errorf("a line of %d characters: %s", len(line), line)
		}
	}
	if lines[0] != "answers: 200 (2)" || strings.Join(strings.Fields(strings.Join(lines[1:], " ")), " ") != long {
		t.Errorf("%q", lines)
	}
}

// TestFindingFolded: a wide cell of a finding is wrapped.
func TestFindingFolded(t *testing.T) {
	var out strings.Builder
	f := Finding{Title: "a wide row", Columns: []string{"where", "this run"}, Rows: [][]string{{"orders", strings.Repeat("column value, ", 20)}}}
	require.NoError(t, f.Text(&out))
	for _, line := range strings.Split(out.String(), "\n") {
		if n := utf8.RuneCountInString(line); n > 80 {
			t.Errorf("%d characters: %s", n, line)
		}
	}
	if n := strings.Count(out.String(), "column value,"); n != 20 {
		t.Errorf("%d of 20 values", n)
	}
}
