package witness

import (
	"io"
	"slices"
)

// A Document describes a search, or one schedule that was run again.
type Document struct {
	Head    string   // one line; "" for one schedule
	Notes   []string // lines below the head
	Title   string   // title of a page
	Extent  string   // how much was explored
	Summary string   // the same as a sentence
	Buyers  int      // number of columns
	Broken  Found    // the violation, or the schedule that was run again; its Witness is nil if there is none
	Others  []Found  // witnesses that are not violations
	Data    any      // data for programs
}

// Found is a witness and the command that repeats it.
type Found struct {
	*Witness
	Intro  string // printed before it
	Replay string // the command that runs it again; "" if the user just gave it
}

// A Format writes a document.
type Format struct {
	Name  string // name on the command line
	Write func(out io.Writer, d Document) error
}

// Formats lists all formats, the one for people first.
func Formats() []Format {
	return []Format{
		{"text", writeText},
		{"mermaid", writeMermaid},
		{"json", writeJSON},
		{"html", writeHTML},
	}
}

// FormatNames returns the names of the formats.
func FormatNames() (names []string) {
	for _, f := range Formats() {
		names = append(names, f.Name)
	}
	return names
}

// FormatNamed finds a format.
func FormatNamed(name string) (Format, bool) {
	all := Formats()
	i := slices.IndexFunc(all, func(f Format) bool { return f.Name == name })
	if i < 0 {
		return Format{}, false
	}
	return all[i], true
}
