package copies

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTable: each reproduction has its command in docs/track-record.md, and each command there has
// its reproduction.
func TestTable(t *testing.T) {
	text, err := os.ReadFile("../../docs/track-record.md")
	if err != nil {
		t.Fatal(err)
	}
	written, there := map[string]bool{}, map[string]bool{}
	for _, name := range regexp.MustCompile(`-run (Test\w+)`).FindAllStringSubmatch(string(text), -1) {
		written[name[1]] = true
	}
	files, err := filepath.Glob("../*/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.Contains(file, "/planted/") {
			continue // not a bug in another project
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`(?m)^func (Test\w+)\(t `).FindAllStringSubmatch(string(source), -1) {
			there[name[1]] = true
			if !written[name[1]] && !strings.HasSuffix(file, "table_test.go") {
				t.Errorf("docs/track-record.md has no command for %s in %s", name[1], file)
			}
		}
	}
	for name := range written {
		if !there[name] {
			t.Errorf("docs/track-record.md has a command for %s, and nothing is called so", name)
		}
	}
	if len(written) < 10 {
		t.Errorf("%d commands; want ten or more", len(written))
	}
}
