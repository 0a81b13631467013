package witness

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
)

// mostRows is the number of rows of a finding that are shown.
const mostRows = 8

// Shown returns the first rows.
func (f Finding) Shown() [][]string { return f.Rows[:min(len(f.Rows), mostRows)] }

// More says how many rows are not shown; "" if all are.
func (f Finding) More() string {
	if n := len(f.Rows) - mostRows; n > 0 {
		return fmt.Sprintf("and %d more", n)
	}
	return ""
}

// returns describes a query that has returned a row. The query follows.
const returns = "must return no row, and does: "

// Why describes the findings in one line.
func Why(findings []Finding) string { return returns + Queries(findings) }

// Queries lists the queries of the findings in one line.
func Queries(findings []Finding) string {
	var all []string
	for _, f := range findings {
		all = append(all, f.Query)
	}
	return strings.Join(all, "; ")
}

// Text writes the description, and the rows of the query as a small table.
func (f Finding) Text(out io.Writer) error {
	t := newTable()
	t.AppendHeader(cells(f.Columns))
	for _, row := range f.Shown() {
		t.AppendRow(cells(row))
	}
	more := f.More()
	if more != "" {
		more += "\n"
	}
	_, err := fmt.Fprintf(out, "%s%s\n%s\n%s", returns, f.Query, t.Render(), more)
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
