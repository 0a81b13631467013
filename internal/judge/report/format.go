package report

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// A Format is one way to write a document.
type Format struct {
	Ending string // of its files, with the dot
	What   string // it is, for a help text
	Write  func(w io.Writer, d Document) error
}

// Formats are all of them, in the order in which a help text lists them.
func Formats() []Format {
	return []Format{
		jsonFormat(),
		junitFormat(),
		markdownFormat(),
		htmlFormat(),
	}
}

// Endings are those of all formats: ".json, .xml, .md or .html".
func Endings() string {
	var endings []string
	for _, f := range Formats() {
		endings = append(endings, f.Ending)
	}
	last := len(endings) - 1
	return strings.Join(endings[:last], ", ") + " or " + endings[last]
}

// ByEnding finds the format of a path, upper case or lower. An error names the
// endings that there are.
func ByEnding(path string) (Format, error) {
	formats := Formats()
	i := slices.IndexFunc(formats, func(f Format) bool { return f.Ending == strings.ToLower(filepath.Ext(path)) })
	if i < 0 {
		return Format{}, fmt.Errorf("unknown ending of %q; use %s", path, Endings())
	}
	return formats[i], nil
}
