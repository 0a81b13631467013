package report

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// A Format is a file format of reports.
type Format struct {
	Ending string // ending of file names, with the dot
	What   string // name of the format in the help text
	Write  func(w io.Writer, d Document) error
}

// Formats returns all formats, in the order of the help text.
func Formats() []Format {
	return []Format{
		jsonFormat(),
		junitFormat(),
		markdownFormat(),
		htmlFormat(),
	}
}

// Endings lists the endings of all formats: ".json, .xml, .md or .html".
func Endings() string {
	var endings []string
	for _, f := range Formats() {
		endings = append(endings, f.Ending)
	}
	last := len(endings) - 1
	return strings.Join(endings[:last], ", ") + " or " + endings[last]
}

// Proof returns the section of the documentation about the proof that exit code 0 of a command gives. The command
// prints it last when it ends with exit code 0.
func Proof(command string) string {
	return "docs/reference/commands/" + command + ".md#what-exit-0-proves"
}

// ByEnding returns the format for a path. Case does not matter. An error lists the endings.
func ByEnding(path string) (Format, error) {
	formats := Formats()
	i := slices.IndexFunc(formats, func(f Format) bool { return f.Ending == strings.ToLower(filepath.Ext(path)) })
	if i < 0 {
		return Format{}, fmt.Errorf("unknown ending of %q; use %s", path, Endings())
	}
	return formats[i], nil
}

// Markdown returns a document in Markdown.
func Markdown(d Document) (string, error) {
	var text strings.Builder
	err := markdownFormat().Write(&text, d)
	return text.String(), err
}
