package rows

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/wire"
)

// Answered updates the tracker, which knows the rows of each open transaction, after a command was answered.
func (t *Tracker) Answered(o Command) {
	if t.Catalog == nil || o.Conn().Protocol != "postgres" || o.Push {
		return
	}
	m := effect.Mentions(o.Text, effect.Postgres)
	tx := t.open[o.Conn()]
	if controls(m, o.Text) {
		t.used = append(t.used, Used{o.Buyer, *o.Usage})
		if tx != nil && (tx.failed || o.Answer.Refused || rollsBack.MatchString(o.Text)) {
			delete(t.rows, o.Buyer)
			t.sets = append(t.sets, cellChange{buyer: o.Buyer, conn: o.Conn(), at: len(t.used), undone: true})
		}
		if m.Ends {
			delete(t.open, o.Conn())
		}
		return
	}
	if tx == nil || o.OwnTransaction {
		tx = &transaction{buyer: o.Buyer}
		delete(t.open, o.Conn())
	}
	if !o.OwnTransaction {
		t.open[o.Conn()] = tx
	}
	tx.failed = tx.failed || o.Answer.Refused // a later COMMIT of this transaction rolls back
	u := *o.Usage
	if table := overtaken(Used{o.Buyer, u}, o.Conn(), t.sets); table != "" {
		t.Doubt(fmt.Sprintf("a buyer changes a row of %s on two connections at once, so commands on it may not commute", table))
	}
	if u.Now == nil || o.Timed {
		t.unclear(tx, o)
		return
	}
	t.remember(tx, &u, o)
	for _, one := range u.all {
		if one.Use != schedule.Sees && one.Use != schedule.Draws {
			tx.uses = append(tx.uses, one)
		}
	}
	t.writes(o, u)
	t.used = append(t.used, Used{o.Buyer, u})
	t.foresee(len(t.used) - 1)
}

// Doubt records the first reason why commands may not commute. Only a tracker with a catalog records it:
// without a catalog, no two commands count as commuting because of their rows.
func (t *Tracker) Doubt(why string) {
	if t.Catalog != nil {
		t.why = cmp.Or(t.why, why)
	}
}

// unclear updates the tracker after an answered command whose footprint (the rows that it uses) is unknown.
func (t *Tracker) unclear(tx *transaction, o Command) {
	tx.unknown = tx.unknown || o.Effect != schedule.Reads
	if o.Effect == schedule.Writes {
		delete(t.rows, o.Buyer)
		if o.Usage.Now == nil {
			t.wrote = nil
			t.set(o, cell{})
		}
	}
	t.writes(o, *o.Usage)
	t.used = append(t.used, Used{o.Buyer, *o.Usage})
}

func (t *Tracker) writes(o Command, u Usage) {
	for _, one := range u.all {
		if one.Use != schedule.Shows {
			continue
		}
		if t.wrote != nil {
			t.wrote[one.Table] = true
		}
		if one.Table != u.table || one.Fixed == nil {
			t.set(o, cell{table: one.Table})
		}
	}
	if u.table == "" {
		return
	}
	primary := t.shapes[u.table].Primary
	if u.finds.Fixed == nil {
		for _, values := range u.new {
			if key := t.row(u.table, values)[primary]; key != schedule.Fresh {
				t.set(o, cell{table: u.table, key: key})
			}
		}
		return
	}
	keys := u.finds.Fixed[primary]
	if len(keys) == 0 {
		keys = []string{""}
	}
	for _, key := range keys {
		for _, values := range u.new {
			for column := range values {
				t.set(o, cell{u.table, column, key})
			}
		}
	}
}

func (t *Tracker) set(o Command, one cell) {
	t.sets = append(t.sets, cellChange{cell: one, buyer: o.Buyer, conn: o.Conn(), at: len(t.used)})
}

// Closed updates the tracker after the program has closed a connection.
func (t *Tracker) Closed(c *wire.Conn) {
	tx := t.open[c]
	if tx == nil {
		return
	}
	if tx.unknown || len(tx.uses) > 0 {
		t.Doubt("a program closed a connection inside a transaction, whose end was not a step")
	}
	delete(t.open, c)
	delete(t.rows, c.Buyer)
}

// remember stores the keys and values of rows that a command inserts, and updates them after an UPDATE.
func (t *Tracker) remember(tx *transaction, u *Usage, o Command) {
	for _, one := range u.all {
		if one.Use == schedule.Shows && one.Table != u.table {
			delete(t.rows[o.Buyer], one.Table) // forget the rows of this table: for example, a foreign key may have changed them
		}
	}
	if u.table == "" || len(u.new) == 0 || o.Answer.Refused {
		return
	}
	shape := t.shapes[u.table]
	if t.rows[o.Buyer] == nil {
		t.rows[o.Buyer] = images{}
	}
	if u.finds.Fixed == nil { // an INSERT
		for n, values := range u.new {
			row := t.row(u.table, values)
			if key := (naming{t}).keyOf(u, row, o, n); key != "" {
				row[shape.Primary] = key
				t.rows[o.Buyer].put(u.table, key, &image{tx, maps.Clone(row)})
				if len(u.new) == 1 {
					for i := range u.all {
						if u.all[i].Use == schedule.Shows && u.all[i].Table == u.table {
							u.all[i].Fixed = lists(row)
						}
					}
				}
			}
		}
		return
	}
	fixed := u.finds.Fixed[shape.Primary]
	certain := len(fixed) == 1 && strings.HasSuffix(cmp.Or(o.Answer.Whole, o.Answer.Text), "1 changed") // "1 changed": no further condition of the UPDATE has excluded the row
	for key, one := range t.rows[o.Buyer][u.table] {
		if len(fixed) == 1 && fixed[0] != key {
			continue
		}
		for column, value := range u.new[0] {
			delete(one.values, column)
			if v, known := t.value(u.table, column, value); known && certain {
				one.values[column] = v
			}
		}
	}
}

// keyOf returns the primary key of a new row. It returns "" if the key is unknown, or differs between runs and
// has no name.
func (t naming) keyOf(u *Usage, row map[string]string, o Command, n int) string {
	shape := t.shapes[u.table]
	key := row[shape.Primary]
	if shape.Primary == "" || key == schedule.Null {
		return ""
	}
	if key != "" && key != schedule.Fresh {
		return key
	}
	if len(o.Answer.Rows) != len(u.new) {
		return ""
	}
	for _, cell := range o.Answer.Rows[n] {
		if cell.Column != shape.Primary {
			continue
		}
		if t.raw || t.names.Known(cell.Value) != "" {
			key, _ = t.known(u.table, shape.Primary, cell.Value, "")
			return key
		}
	}
	return ""
}
