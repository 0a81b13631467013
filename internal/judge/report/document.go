// Package report writes the result of a command to files, each in the format
// that its ending names.
//
//	a command's result -> Document -> .json .xml .md .html
//
// A command turns its result into one Document and knows no format; a format
// renders any Document and knows no command. A new format is one file here and
// one line in Formats.
package report

import (
	"html/template"
	"time"
)

// A Document is what a result shows, in the order of reading.
type Document struct {
	Command string    // that made it: "shop verify"
	Title   string    // in one line
	Lead    string    // what was run and where, a sentence without its full stop
	Sums    []Sum     // what it comes to
	Started time.Time // zero where it does not matter
	Took    time.Duration
	Alarm   string // why the result is not whole; "" when it is

	Tables []Table
	Notes  []string // paragraphs below the tables
	Groups []Group  // of Cases, in the order of reading
	Cases  []Case   // in the order of the result
	Page   *Page    // for Markdown, in place of Tables and Notes; nil: none

	Value any // the result itself, for .json

	folder string // in which the file will lie, from which it links
}

// A Sum is a number with its unit: 3 "contradict their promise".
type Sum struct {
	Count  int
	What   string
	Status Status // its colour
}

// Status is how something compares with what was expected of it.
type Status int

// The statuses. None is of a text that compares with nothing.
const (
	None        Status = iota
	Holds              // and nothing else was promised
	Breaks             // as promised
	Contradicts        // its promise
	Void               // it has shown nothing
	Failed             // as Void, because the instrument failed
)

// A Table has one line of headings.
type Table struct {
	Columns []Column
	Rows    [][]Cell
	Legend  bool // it has statuses: say what their marks mean
	Note    string
}

// A Column is the heading of one.
type Column struct {
	Name    string
	Numbers bool // set right
	Width   int  // the most on a terminal, where longer texts are wrapped; 0: any
}

// A Cell is one field of a table.
type Cell struct {
	Text   string
	Code   bool // a name as it is typed
	Status Status
	Case   string // the ID of the case that it stands for; "" for none
}

// Columns are headings of texts.
func Columns(names ...string) (columns []Column) {
	for _, name := range names {
		columns = append(columns, Column{Name: name})
	}
	return columns
}

// Texts are the cells of a row.
func Texts(texts ...string) (row []Cell) {
	for _, text := range texts {
		row = append(row, Cell{Text: text})
	}
	return row
}

// Row is a row that begins with a name as it is typed.
func Row(name string, texts ...string) []Cell {
	return append([]Cell{{Text: name, Code: true}}, Texts(texts...)...)
}

// A Page is a document as a page of documentation. Its texts are Markdown. A link in them
// becomes plain text if its target does not exist from where the report lies.
type Page struct {
	Intro  string // one sentence: the question and the reader
	Legend string // how to read the table
	Table  Table
	After  string // the sections below the cases
}

// A Group is a heading with the cases below it, those of them whose Group is its
// place in Document.Groups. One without cases is not shown.
type Group struct {
	Heading string
	Brief   bool      // a line a case instead of a section
	OffPage bool      // a document with a Page does not show it in Markdown
	Columns [3]string // of the lines: the case's suite, its name, what was seen
}

// A Case is one thing that was looked at: a strategy under a fault. JUnit shows
// each as a test.
type Case struct {
	Group   int // the place in Document.Groups
	Suite   string
	Name    string
	Title   string
	Word    string // the verdict, in one word; may be ""
	Status  Status
	Promise string // the word that was promised; "" where nothing is said of it
	Seen    string // a sentence without its full stop
	Small   []string
	Details []Detail
	Command string // that shows it again; may be ""
	Took    time.Duration
}

// ID names the case within its document.
func (c Case) ID() string { return c.Suite + "-" + c.Name }

// A Detail is a picture or a text of a case. Each format shows the forms that it
// can: all that are set say the same.
type Detail struct {
	Text    string        // preformatted
	Mermaid string        // the source of a diagram
	Picture template.HTML // an SVG, made by this program
	Table   *Table
	After   string // a sentence below it
	File    string // a path of a file to link to, under the name Summary
	Summary string
}

// in are the cases of a group.
func (d Document) in(group int) (cases []Case) {
	for _, c := range d.Cases {
		if c.Group == group {
			cases = append(cases, c)
		}
	}
	return cases
}
