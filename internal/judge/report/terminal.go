package report

import (
	"regexp"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// A Look controls the appearance of a table on a terminal.
type Look struct {
	Boxed  bool // lines around the table and between its columns
	Marks  bool // a mark in each cell that is not as promised or proves nothing
	Colour bool
	Loud   bool // a violation is red even if it was promised
}

// trailing matches the spaces that pad the last column.
var trailing = regexp.MustCompile(`(?m) +$`)

// Terminal returns the table as a command prints it, without its note.
func (t Table) Terminal(look Look) string {
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	style.Options.DrawBorder, style.Options.SeparateColumns = look.Boxed, look.Boxed
	w := table.NewWriter()
	w.SetStyle(style)
	var head table.Row
	var columns []table.ColumnConfig
	for i, c := range t.Columns {
		head = append(head, c.Name)
		config := table.ColumnConfig{Number: i + 1, WidthMax: c.Width, WidthMaxEnforcer: text.WrapSoft}
		if c.Numbers {
			config.Align, config.AlignHeader = text.AlignRight, text.AlignRight
		}
		columns = append(columns, config)
	}
	w.SetColumnConfigs(columns)
	w.AppendHeader(head)
	for _, cells := range t.Rows {
		var row table.Row
		for _, c := range cells {
			row = append(row, c.Terminal(look))
		}
		w.AppendRow(row)
	}
	if look.Boxed {
		return w.Render()
	}
	return trailing.ReplaceAllString(w.Render(), "")
}

// Terminal returns the cell's text in colour. Green means "holds", grey a violation that was promised, yellow
// a result that proves nothing, and red anything else.
func (c Cell) Terminal(look Look) string {
	word := c.Text
	switch {
	case look.Marks && c.Status == Void:
		word = "? " + word
	case look.Marks && (c.Status == Contradicts || c.Status == Failed):
		word = "! " + word
	}
	switch {
	case !look.Colour || c.Status == None:
		return word
	case c.Status == Holds:
		return text.FgGreen.Sprint(word)
	case c.Status == Void:
		return text.FgYellow.Sprint(word)
	case c.Status == Breaks && !look.Loud:
		return text.Faint.Sprint(word)
	}
	return text.FgRed.Sprint(word)
}
