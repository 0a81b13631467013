package witness

import (
	"io"
	"slices"
)

// A Document describes the result of a search, or one replayed schedule.
type Document struct {
	Head    string   // one line; "" for a replayed schedule
	Notes   []string // lines below the head
	Title   string   // title of a page
	Extent  string   // extent of the search
	Summary string   // Extent as a sentence
	Buyers  int      // number of columns
	Broken  Found    // the violation or the replayed schedule; Witness is nil if there is none
	Others  []Found  // witnesses that are not violations
	Data    any      // the value that the JSON format prints
}

// Found is a witness and the command that replays it.
type Found struct {
	*Witness
	Intro  string // printed before the witness
	Replay string // the command that replays it; "" if the user has just run it
}

// A Format writes a document.
type Format struct {
	Name  string // name on the command line
	Write func(out io.Writer, d Document) error
}

// Formats lists all formats. The first is the text for the user.
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

func FormatNamed(name string) (Format, bool) {
	all := Formats()
	i := slices.IndexFunc(all, func(f Format) bool { return f.Name == name })
	if i < 0 {
		return Format{}, false
	}
	return all[i], true
}
