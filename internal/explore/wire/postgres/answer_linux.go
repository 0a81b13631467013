package postgres

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/wire"
	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/plural"
)

// A field is a column of a result.
type field struct {
	name   string
	oid    uint32
	format int16
}

// A result is the answer to one statement so far.
type result struct {
	says   said
	fields []field
	rows   int
	ids    []string // values that the server may have generated
	out    bool     // the rows belong to COPY TO
}

// An answer is the result of a command's statements.
type answer struct {
	shown           wire.Shown
	changed, failed bool
	refused         bool
	made            []string
	rows            int // number of rows of all statements
}

// fails reads an ErrorResponse. Within a transaction, the server has then released the locks (xact.c,
// AbortTransaction).
func (a *answer) fails(f frame, opened bool) {
	text := errorText(errorOf(f))
	if a.shown.Full() {
		a.shown.Only(text)
	} else {
		a.shown.Add(text)
	}
	a.failed, a.refused = true, true
	a.changed = a.changed || opened
}

func (a *answer) fill(out *wire.Answer) {
	out.Text, out.Whole = a.shown.Text(), a.shown.Whole()
	out.Rows = a.shown.Rows()
	out.Unseen = max(0, a.rows-len(out.Rows))
	out.Changed, out.Failed, out.Made = a.changed, a.failed, a.made
	out.Refused = a.refused
}

// describes reads a RowDescription: the answer to a Describe, or the head of the rows of a Query.
func (c *call) describes(f frame) {
	var m pgproto3.RowDescription
	if m.Decode(f.body()) != nil {
		return
	}
	var fields []field
	for _, d := range m.Fields {
		fields = append(fields, field{string(d.Name), d.DataTypeOID, d.Format})
	}
	if !c.extended || len(c.expects) == 0 {
		c.result.fields = fields
		return
	}
	e := c.head()
	if e.portal != nil {
		e.portal.fields = fields
		e.portal.statement.fields = fields
	} else if e.statement != nil {
		e.statement.fields = fields
	}
	c.pop()
}

// says returns the analysis of the statement that the server answers next.
func (c *call) says() said {
	if e := c.head(); e.statement != nil {
		return e.statement.says
	} else if e.kind == 'E' {
		return said{}
	}
	return c.result.says
}

func (c *call) columns() []field {
	p := c.head().portal
	if p == nil || len(c.result.fields) > 0 {
		return c.result.fields
	}
	fields := p.fields
	if fields == nil {
		for i, f := range p.statement.fields { // the fields come from an earlier Describe
			f.format = format(p.formats, i)
			fields = append(fields, f)
		}
	}
	c.result.fields = fields
	return fields
}

// row counts a DataRow. It also decodes the row if the row is shown, or if it may contain generated keys.
func (c *call) row(f frame) {
	const mostIDs = 1000
	c.result.rows++
	c.answer.rows++
	shown := !c.answer.shown.Full()
	verb := c.says().Verb
	ids := (verb == "INSERT" || verb == "WITH") && len(c.result.ids) < mostIDs
	if !shown && !ids {
		return
	}
	var m pgproto3.DataRow
	if m.Decode(f.body()) != nil {
		return
	}
	fields := c.columns()
	var cells []witness.Cell
	for i, v := range m.Values[:min(len(m.Values), wire.LongestText)] {
		one := field{}
		if i < len(fields) {
			one = fields[i]
		} else if p := c.head().portal; p != nil {
			one.format = format(p.formats, i)
		}
		cells = append(cells, one.cell(v))
		if !ids || v == nil {
			continue
		}
		id, _ := show(v, one.oid, one.format)
		if strings.EqualFold(one.name, "id") || one.isKey() && len(id) >= shortestKey {
			c.result.ids = append(c.result.ids, id)
		}
	}
	c.answer.shown.Row(cells)
}

// isKey reports whether the column has the type of generated keys: a whole number or a UUID.
func (f field) isKey() bool {
	switch f.oid {
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.UUIDOID:
		return true
	}
	return false
}

// shortestKey is the minimum length of a value that counts as a generated key, in a column that is not
// named id. A shorter value may be a quantity.
const shortestKey = 4

func (f field) cell(v []byte) witness.Cell {
	name := f.name
	if name == "?column?" {
		name = ""
	}
	if v == nil {
		return witness.Cell{Column: name, Value: null}
	}
	shown, _ := show(v, f.oid, f.format)
	text, readable := wire.Readable(shown, true)
	if !readable {
		text = fmt.Sprintf("<%d bytes>", len(shown))
	}
	return witness.Cell{Column: name, Value: text}
}

// complete reads the end of a statement: CommandComplete, EmptyQueryResponse or PortalSuspended.
func (c *call) complete(f frame) {
	a, says := &c.answer, c.says()
	if c.head().kind == 'c' {
		says = said{}
	}
	writes := says.Effect == schedule.Writes
	if f.kind() != 'C' {
		a.changed = a.changed || writes && f.kind() == 's'
		return
	}
	tag, n := tagOf(f)
	switch tag {
	case "SELECT", "FETCH":
		a.changed = a.changed || writes
		switch {
		case c.result.rows > 0:
		case n > 0: // CREATE TABLE AS
			a.shown.Add(plural.Count(n, "row"))
		default:
			a.shown.Add("no row")
			a.failed = true
		}
	case "INSERT", "UPDATE", "DELETE", "MERGE":
		a.changed = a.changed || n > 0 || strings.Contains(says.upper, "WITH")
		a.failed = a.failed || n == 0
		a.shown.Add(fmt.Sprintf("%d changed", n))
		if tag == "INSERT" {
			a.made = append(a.made, c.result.ids...)
		}
	case "COPY":
		a.shown.Add(plural.Count(n, "row"))
		a.changed = a.changed || !c.result.out || strings.Contains(says.upper, "(")
	case "ROLLBACK":
		a.changed = true
		if strings.Contains(says.upper, "ROLLBACK") || strings.Contains(says.upper, "ABORT") {
			a.shown.Add("ok")
		} else {
			a.shown.Add("ROLLBACK")
			a.failed, a.refused = true, true // a COMMIT of a failed transaction
		}
	case "BEGIN", "START TRANSACTION", "SET", "RESET", "LISTEN", "UNLISTEN", "SAVEPOINT", "RELEASE", "PREPARE", "DEALLOCATE", "DEALLOCATE ALL",
		"DECLARE CURSOR", "CLOSE CURSOR", "CLOSE CURSOR ALL":
		a.shown.Add("ok")
	case "SHOW", "EXPLAIN":
		a.changed = a.changed || writes
	default:
		a.changed = true
		a.shown.Add("ok")
	}
}

// tagOf returns the tag of a CommandComplete without its numbers, and the last number.
func tagOf(f frame) (tag string, n int64) {
	words := strings.Fields(string(bytes.TrimRight(f.body(), "\x00")))
	end := len(words)
	for ; end > 0; end-- {
		number, err := strconv.ParseInt(words[end-1], 10, 64)
		if err != nil {
			break
		}
		if end == len(words) { // the tag of an INSERT is INSERT 0 n, where 0 was once an OID
			n = number
		}
	}
	return strings.Join(words[:end], " "), n
}
