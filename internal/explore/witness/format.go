package witness

import (
	"io"
	"slices"
)

// A Document is what there is to say of a search, or of one schedule run again.
type Document struct {
	Head    string   // one line; "" of one schedule
	Notes   []string // lines below it
	Title   string   // of a page
	Extent  string   // how much was explored, in words
	Summary string   // the same as a sentence
	Buyers  int      // how many columns
	Broken  Found    // the violation, or the schedule that was run again; its Witness is nil when there is none
	Others  []Found  // worth seeing, and no violation
	Data    any      // what a program reads
}

// Found is a witness, and how to see it again.
type Found struct {
	*Witness
	Intro  string // printed before it
	Replay string // the command that runs it again; "" where it was just given
}

// A Format writes a document.
type Format struct {
	Name  string // as on the command line
	Write func(out io.Writer, d Document) error
}

// Formats are all, the one for people first.
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
