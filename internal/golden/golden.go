// Package golden compares generated files with the text that the code generates now. go test -update
// writes them.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated files")

// Updating reports whether the test was started with -update.
func Updating() bool { return *update }

// Compare fails the test unless the file has this text. With -update it first writes the file.
func Compare(t testing.TB, file, want string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: run make generate", err)
	}
	if string(text) != want {
		has, should := firstDifference(string(text), want)
		t.Errorf("%s is not current: run make generate. It has\n%s\nand should have\n%s", file, has, should)
	}
}

// firstDifference returns the first lines that differ between two texts that are not equal.
func firstDifference(a, b string) (inA, inB string) {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for n := 0; ; n++ {
		switch {
		case n == len(as):
			return "(end)", bs[n]
		case n == len(bs):
			return as[n], "(end)"
		case as[n] != bs[n]:
			return as[n], bs[n]
		}
	}
}

// Folder compares each file of a folder with its text in the map pages. It reports a file without a text there.
func Folder(t testing.TB, folder string, pages map[string]string) {
	t.Helper()
	for path, want := range pages {
		Compare(t, path, want)
	}
	files, err := filepath.Glob(folder + "/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if _, generated := pages[file]; !generated {
			t.Errorf("%s is not generated any more: delete it", file)
		}
	}
}
