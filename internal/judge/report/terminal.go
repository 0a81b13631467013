package report

import (
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Terminal is the table as a command prints it, without its note.
func (t Table) Terminal() string {
	w := table.NewWriter()
	w.SetStyle(table.StyleLight)
	w.Style().Options = table.Options{SeparateHeader: true}
	w.Style().Format.Header = text.FormatDefault
	var head table.Row
	var right []table.ColumnConfig
	for i, c := range t.Columns {
		head = append(head, c.Name)
		if c.Numbers {
			right = append(right, table.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight})
		}
	}
	w.SetColumnConfigs(right)
	w.AppendHeader(head)
	for _, cells := range t.Rows {
		var row table.Row
		for _, c := range cells {
			row = append(row, c.Text)
		}
		w.AppendRow(row)
	}
	return w.Render()
}
