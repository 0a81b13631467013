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
	Command string    // the command that ran, such as "shop verify"
	Title   string    // one line
	Lead    string    // a sentence about the run and its servers, without its full stop
	Sums    []Sum     // the totals
	Started time.Time // start of the run; zero if irrelevant
	Took    time.Duration
	Alarm   string // says why the result is incomplete; "" if it is complete

	Tables []Table
	Notes  []string // paragraphs below the tables
	Groups []Group  // the headings under which Cases appear, in reading order
	Cases  []Case   // cases, in the order of the result
	Page   *Page    // replaces Tables and Notes in Markdown if it is not nil

	Value any // the command's result, written to .json files

	folder string // folder of the written file; links are relative to it
}

// A Sum is a number with a text, such as 3 and "contradict their promise".
type Sum struct {
	Count  int
	What   string
	Status Status // determines its colour
}

// Status compares a result with the expectation.
type Status int

// The statuses. None marks a text that has no expectation.
const (
	None        Status = iota
	Holds              // no violation, as expected
	Breaks             // a violation that was promised
	Contradicts        // not as promised
	Void               // proves nothing
	Failed             // proves nothing, because the test itself failed
)

// A Table has one line of headings, and rows of cells.
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
	Code   bool // in code type: a name, or several with ", " between them
	Status Status
	Case   string // ID of the case that the cell shows; may be ""
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

// A Page contains the Markdown texts of a document that is a page of the documentation.
type Page struct {
	Intro  string // one sentence: the question that the page answers, and its reader
	Legend string // how to read the table
	Table  Table
	After  string // the sections below the cases
}

// A Group is a heading. Below it are the cases whose field Group is its index. A group without cases is not
// printed.
type Group struct {
	Heading string
	Brief   bool      // one line for each case instead of a section
	OffPage bool      // a document with a Page leaves the group out in Markdown
	Columns [3]string // headings for the case's suite, its name, and Seen
}

// A Case is one test, such as a strategy under a fault. JUnit shows each case as a test.
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

// A Detail is a picture or a text of a case, in several forms with the same content. Each format uses the
// forms that it supports.
type Detail struct {
	Text    string        // preformatted
	Mermaid string        // the source of a diagram
	Picture template.HTML // an SVG made by this program
	Table   *Table
	After   string // a sentence below the detail
	File    string // path of a linked file; Summary is the text of the link
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
