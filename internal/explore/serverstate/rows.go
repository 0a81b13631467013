package serverstate

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Rows holds a complete result of a query.
type Rows struct {
	columns []string
	values  [][]driver.Value
	next    int
}

// Keep reads a complete result. If the cursor stayed open, the next step would still read from the server.
func Keep(from driver.Rows) (*Rows, error) {
	kept := &Rows{columns: from.Columns()}
	for {
		row := make([]driver.Value, len(kept.columns))
		err := from.Next(row)
		if errors.Is(err, io.EOF) {
			return kept, from.Close()
		}
		if err != nil {
			return nil, errors.Join(err, from.Close())
		}
		for i := range row {
			if b, ok := row[i].([]byte); ok { // the buffer belongs to the driver
				row[i] = append([]byte(nil), b...)
			}
		}
		kept.values = append(kept.values, row)
	}
}

// Empty reports whether there is no row.
func (r *Rows) Empty() bool { return len(r.values) == 0 }

// Columns implements driver.Rows.
func (r *Rows) Columns() []string { return r.columns }

// Close implements driver.Rows.
func (r *Rows) Close() error { return nil }

// Next implements driver.Rows.
func (r *Rows) Next(dest []driver.Value) error {
	if r.next == len(r.values) {
		return io.EOF
	}
	copy(dest, r.values[r.next])
	r.next++
	return nil
}

// String returns the rows for the user. It omits columns that the buyer knows, such as names, and zeros in columns that
// no strategy has used yet.
func (r *Rows) String() string {
	if len(r.values) == 0 {
		return "no row"
	}
	var lines []string
	for _, row := range r.values {
		var cells []string
		for i, column := range r.columns {
			if cell := r.cell(column, Show(row[i])); cell != "" {
				cells = append(cells, cell)
			}
		}
		lines = append(lines, strings.Join(cells, " "))
	}
	return strings.Join(lines, "; ")
}

// Whole returns everything that a strategy can read, except real times. The time of a purchase is not real: it comes
// from the strategies' clock.
func (r *Rows) Whole() string {
	var b strings.Builder
	for _, row := range r.values {
		for i, column := range r.columns {
			switch column {
			case "waited_ms":
			default:
				fmt.Fprintf(&b, "%s=%s ", column, exact(row[i]))
			}
		}
		b.WriteString("; ")
	}
	return b.String()
}

// exact returns a value as text in which NULL and the text "NULL" differ. Times are in ms.
func exact(v driver.Value) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case time.Time:
		return strconv.FormatInt(v.UnixMilli(), 10)
	}
	return strconv.Quote(Show(v))
}

// cell returns a value with its column; "" if the value is not worth showing.
func (r *Rows) cell(column, value string) string {
	switch column {
	case "id", "name", "stocked", "product_name", "purchase_time", "strategy", "idempotency_key", "waited_ms", "left_after":
		if len(r.columns) > 1 {
			return ""
		}
		if column == "id" {
			value = "N" // ids continue from run to run, so they differ
		}
	case "version", "fence", "last_entry":
		if value == "0" || value == "0-0" {
			return ""
		}
	}
	if name, _, ok := strings.Cut(column, "("); ok { // GET_LOCK('...', 5)
		column = name
	}
	return column + "=" + value
}

// Show returns a value as text for the user. Each time becomes "now".
func Show(v driver.Value) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case []byte:
		return string(v)
	case time.Time:
		return "now"
	}
	return fmt.Sprint(v)
}
