package witness

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
)

const mostRows = 8

// Shown returns the first rows of the finding, at most mostRows.
func (f Finding) Shown() [][]string { return f.Rows[:min(len(f.Rows), mostRows)] }

// More returns a text with the number of rows that are not shown; "" if all are shown.
func (f Finding) More() string {
	if n := len(f.Rows) - mostRows; n > 0 {
		return fmt.Sprintf("and %d more", n)
	}
	return ""
}

const returns = "must return no row, and does: "

// Why describes the findings in one line.
func Why(findings []Finding) string {
	if len(findings) == 1 {
		return findings[0].Heading()
	}
	return returns + Queries(findings)
}

// Heading describes the finding in one line.
func (f Finding) Heading() string {
	if f.Title != "" {
		return f.Title
	}
	return returns + f.Query
}

// Queries lists the queries of the findings in one line.
func Queries(findings []Finding) string {
	var all []string
	for _, f := range findings {
		all = append(all, cmp.Or(f.Query, f.Title))
	}
	return strings.Join(all, "; ")
}

// Text writes the finding's heading, its rows as a small table, and the remedy.
func (f Finding) Text(out io.Writer) error {
	t := newTable()
	var configs []table.ColumnConfig
	for i := range f.Columns {
		configs = append(configs, table.ColumnConfig{Number: i + 1, WidthMax: columnWidth, WidthMaxEnforcer: wrapLines})
	}
	t.SetColumnConfigs(configs)
	t.AppendHeader(cells(f.Columns))
	for _, row := range f.Shown() {
		t.AppendRow(cells(row))
	}
	more := f.More()
	if more != "" {
		more += "\n"
	}
	if f.Remedy != "" {
		more += f.Remedy + "\n"
	}
	_, err := fmt.Fprintf(out, "%s\n%s\n%s", f.Heading(), t.Render(), more)
	return err
}

// cells returns the values of a row. Whole numbers are right-aligned.
func cells(values []string) (row table.Row) {
	for _, v := range values {
		if n, err := strconv.ParseInt(v, 10, 64); err == nil && strconv.FormatInt(n, 10) == v {
			row = append(row, n)
		} else {
			row = append(row, v)
		}
	}
	return row
}
