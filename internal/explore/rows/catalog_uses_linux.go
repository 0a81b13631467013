package rows

import (
	"maps"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/serverstate"
)

// anyRow returns the footprint (the rows that a command may use) of a change to unknown rows of a table. It includes
// rows of the tables that reference this table.
func (c *Catalog) anyRow(table string, done map[string]bool) (all schedule.Footprint) {
	if done[table] {
		return nil
	}
	done[table] = true
	for _, use := range []schedule.Use{schedule.Sees, schedule.Locks, schedule.Shows, schedule.Draws} {
		all = append(all, schedule.Touch{Use: use, Table: table, Keys: use == schedule.Locks || use == schedule.Shows})
	}
	s := c.shapes[table]
	if s == nil {
		return all
	}
	all = append(all, c.claims(table, nil, nil)...)
	for _, p := range s.Parents {
		all = append(all, schedule.Touch{Use: schedule.Checks, Table: p.Table})
	}
	for _, kid := range s.Kids {
		all = append(all, c.anyRow(kid, done)...)
	}
	return all
}

// inserts returns the footprint of a new row.
func (c *Catalog) inserts(table string, row map[string]string) (all schedule.Footprint) {
	fixed := lists(row)
	all = append(all, schedule.Touch{Use: schedule.Shows, Table: table, Keys: true, Fixed: fixed})
	all = append(all, c.claims(table, nil, fixed)...)
	for _, p := range c.shapes[table].Parents {
		all = append(all, c.checks(table, p, row)...)
	}
	if c.ruled[table] {
		all = append(all, schedule.Touch{Use: schedule.Draws, Table: table})
	}
	return all
}

// claims returns the keys that a row adds or removes: in the unique index on `key`, or in all unique indexes if
// `key` is nil.
func (c *Catalog) claims(table string, key []string, row map[string][]string) (all schedule.Footprint) {
	shape := c.shapes[table]
	for _, one := range shape.Keys {
		if key != nil && !slices.Equal(key, one) {
			continue
		}
		place := map[string][]string{}
		null := false
		for _, column := range one {
			if values := row[column]; len(values) > 0 {
				place[column] = values
				null = null || slices.Equal(values, []string{schedule.Null})
			}
		}
		if !null || shape.Unclear { // NULL conflicts with no other value
			all = append(all, schedule.Touch{Use: schedule.Claims, Table: table, Index: strings.Join(one, ","), Fixed: place})
		}
	}
	if shape.Unclear {
		all = append(all, schedule.Touch{Use: schedule.Claims, Table: table})
	}
	return all
}

// checks returns the row of another table that a foreign key of this row requires.
func (c *Catalog) checks(table string, p serverstate.Parent, row map[string]string) schedule.Footprint {
	fixed := map[string][]string{}
	for i, column := range p.Columns {
		if row[column] == schedule.Null {
			return nil
		}
		if v := row[column]; v != "" && v != schedule.Fresh {
			if parent := c.shapes[p.Table]; parent != nil && parent.Columns[p.Refs[i]].Kind == c.shapes[table].Columns[column].Kind {
				fixed[p.Refs[i]] = []string{v}
			}
		}
	}
	return schedule.Footprint{{Use: schedule.Checks, Table: p.Table, Fixed: fixed}}
}

func (c *Catalog) row(table string, values effect.Values) map[string]string {
	row := map[string]string{}
	for column := range c.shapes[table].Columns {
		value, given := values[column]
		if !given {
			def := effect.Default
			value = &def
		}
		if v, known := c.value(table, column, value); known {
			row[column] = v
		}
	}
	return row
}

// value returns the value that a statement assigns to a column. It returns false if the value is unknown.
func (c *Catalog) value(table, column string, value *string) (v string, known bool) {
	switch {
	case value == nil || c.shapes[table].Columns[column].Kind == serverstate.Unclear:
		return "", false
	case *value != effect.Default:
		return *value, true
	}
	switch c.shapes[table].Columns[column].Default {
	case serverstate.Fresh:
		return schedule.Fresh, true
	case serverstate.Empty:
		return schedule.Null, true
	}
	return "", false
}

// updates returns the rows that an UPDATE locks and changes. The map `old` has the known values of these rows.
func (c *Catalog) updates(a effect.Access, old map[string][]string) (all schedule.Footprint) {
	table, sets := a.Finds.Table, a.Sets[0]
	shape := c.shapes[table]
	row := map[string][]string{}
	maps.Copy(row, old)
	for column, value := range sets {
		delete(row, column)
		if v, known := c.value(table, column, value); known {
			row[column] = []string{v}
		}
	}
	keys := false
	for _, key := range shape.Keys {
		if slices.ContainsFunc(key, func(column string) bool { _, set := sets[column]; return set }) {
			keys = true
			all = append(all, c.claims(table, key, old)...)
			all = append(all, c.claims(table, key, row)...)
		}
	}
	if shape.Unclear {
		all = append(all, schedule.Touch{Use: schedule.Claims, Table: table})
	}
	if keys {
		for _, kid := range shape.Kids {
			all = append(all, c.anyRow(kid, map[string]bool{})...)
		}
	}
	for _, p := range shape.Parents {
		if slices.ContainsFunc(p.Columns, func(column string) bool { _, set := sets[column]; return set }) {
			known := map[string]string{}
			for column, values := range row {
				if len(values) == 1 {
					known[column] = values[0]
				}
			}
			all = append(all, c.checks(table, p, known)...)
		}
	}
	return append(all,
		schedule.Touch{Use: schedule.Locks, Table: table, Keys: keys, Fixed: old},
		schedule.Touch{Use: schedule.Shows, Table: table, Keys: keys, Fixed: old},
		schedule.Touch{Use: schedule.Shows, Table: table, Keys: keys, Fixed: row})
}
