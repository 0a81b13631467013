package rows

import "github.com/oversell/oversell/internal/explore/schedule"

// A cell is a column of a row of a table. An empty column stands for all columns, an empty key for all rows,
// and an empty table for all tables.
type cell struct{ table, column, key string }

// A cellChange is a change of a cell.
type cellChange struct {
	cell
	buyer  int
	conn   any  // the connection
	at     int  // the number of commands executed before
	undone bool // a rollback of earlier changes
}

// covers reports whether the change may be one of that cell.
func (s cellChange) covers(one cell) bool {
	return s.table == "" || s.table == one.table && (s.column == "" || s.column == one.column) && (s.key == "" || schedule.SameValue(s.key, one.key))
}

// foreign returns the table of a cell that a buyer relied on and another one changes; "" if there is none.
func foreign(all []Used, sets []cellChange) string {
	for _, u := range all {
		for _, one := range u.knew {
			for _, s := range sets {
				if s.buyer != u.buyer && !s.undone && s.covers(one) {
					return one.table
				}
			}
		}
	}
	return ""
}

// overtaken returns the table of a cell that a command relied on, and that another connection of its buyer
// has changed since the command came; "" if there is none.
func overtaken(u Used, conn any, sets []cellChange) string {
	for _, one := range u.knew {
		for _, s := range sets {
			if s.buyer == u.buyer && s.conn != conn && s.at >= u.at && s.covers(one) {
				return one.table
			}
		}
	}
	return ""
}
