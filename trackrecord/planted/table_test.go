package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/require"
)

// TestTable: the tables of docs/reference/track-record.md name every reproduction, and no other test.
func TestTable(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/track-record.md")
	require.NoError(t, err)
	written, there := map[string]bool{}, map[string]bool{}
	for _, name := range regexp.MustCompile("\\| `(Test\\w+)` \\|").FindAllStringSubmatch(string(text), -1) {
		written[name[1]] = true
	}
	files, err := filepath.Glob("../*/*_test.go")
	require.NoError(t, err)
	for _, file := range files {
		if strings.Contains(file, "/planted/") {
			continue // the test reproduces no bug of another project
		}
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, name := range regexp.MustCompile(`(?m)^func (Test\w+)\(t `).FindAllStringSubmatch(string(source), -1) {
			there[name[1]] = true
			if !written[name[1]] && !strings.HasSuffix(file, "table_test.go") {
				t.Errorf("docs/reference/track-record.md has no row for %s in %s", name[1], file)
			}
		}
	}
	for name := range written {
		if !there[name] {
			t.Errorf("docs/reference/track-record.md has a row for %s, and no test has that name", name)
		}
	}
	if len(written) < 10 {
		t.Errorf("%d rows; want ten or more", len(written))
	}
}
