// Package report writes the result of a command to files. The file's ending selects the format.
//
//	a command's result -> Document -> .json .xml .md .html
//
// A command turns its result into one Document and knows no format; a format renders any Document
// and knows no command. A new format is one file here and one line in Formats.
package report

import (
	"html/template"
	"time"
)

// A Document is the content of a result, in reading order.
type Document struct {
	Command string    // for example "shop verify"
	Title   string    // one line
	Lead    string    // a sentence about the run and its servers, without its full stop
	Sums    []Sum     // the totals
	Started time.Time // start of the run; zero if irrelevant
	Took    time.Duration
	Alarm   string // why the result is incomplete; "" if it is complete

	Tables []Table
	Notes  []string // paragraphs below the tables
	Groups []Group  // headings for Cases, in reading order
	Cases  []Case   // cases, in the order of the result
	Page   *Page    // replaces Tables and Notes in Markdown; may be nil

	Value any // the result itself, for .json

	folder string // folder of the written file; links are relative to it
}

// A Sum is a number with a text: 3 "contradict their promise".
type Sum struct {
	Count  int
	What   string
	Status Status // determines its colour
}

// Status compares a result with the expectation.
type Status int

// The statuses. None marks a text that is not compared with an expectation.
const (
	None        Status = iota
	Holds              // no violation, as expected
	Breaks             // a promised violation
	Contradicts        // contradicts the promise
	Void               // proves nothing
	Failed             // proves nothing, because the instrument failed
)

// A Table has one line of headings.
type Table struct {
	Columns []Column
	Rows    [][]Cell
	Legend  bool // print an explanation of the status marks
	Note    string
}

// A Column is a column's heading.
type Column struct {
	Name    string
	Numbers bool // right-aligned
	Width   int  // maximum width on a terminal, which wraps longer texts; 0: unlimited
}

// A Cell is one field of a table.
type Cell struct {
	Text   string
	Code   bool // typeset as code: a name, or several with ", " between them
	Status Status
	Case   string // ID of the cell's case; may be ""
}

// Columns returns columns of text.
func Columns(names ...string) (columns []Column) {
	for _, name := range names {
		columns = append(columns, Column{Name: name})
	}
	return columns
}

// Texts returns the cells of a row.
func Texts(texts ...string) (row []Cell) {
	for _, text := range texts {
		row = append(row, Cell{Text: text})
	}
	return row
}

// Row returns a row that begins with a name in code type.
func Row(name string, texts ...string) []Cell {
	return append([]Cell{{Text: name, Code: true}}, Texts(texts...)...)
}

// A Page is a document as a page of documentation. Its texts are Markdown.
type Page struct {
	Intro  string // one sentence: the question and the reader
	Legend string // how to read the table
	Table  Table
	After  string // the sections below the cases
}

// A Group is a heading for the cases whose field Group contains its index. A group without cases is not
// printed.
type Group struct {
	Heading string
	Brief   bool      // one line for each case instead of a section
	OffPage bool      // a document with a Page omits it in Markdown
	Columns [3]string // headings of the case's suite, its name, and Seen
}

// A Case is one test: a strategy under a fault. JUnit shows each as a test.
type Case struct {
	Group   int // index in Document.Groups
	Suite   string
	Name    string
	Title   string
	Word    string // the verdict in one word; may be ""
	Status  Status
	Promise string // the promised word; "" to omit it
	Seen    string // the observation, a sentence without its full stop
	Small   []string
	Details []Detail
	Command string // repeats the test; may be ""
	Took    time.Duration
}

// ID identifies the case within its document.
func (c Case) ID() string { return c.Suite + "-" + c.Name }

// A Detail is a picture or a text of a case. Each format uses the forms that it supports. All forms
// have the same content.
type Detail struct {
	Text    string        // preformatted
	Mermaid string        // the source of a diagram
	Picture template.HTML // an SVG made by this program
	Table   *Table
	After   string // a sentence below the detail
	File    string // path of a linked file; the link's text is Summary
	Summary string
}

func (d Document) in(group int) (cases []Case) {
	for _, c := range d.Cases {
		if c.Group == group {
			cases = append(cases, c)
		}
	}
	return cases
}
