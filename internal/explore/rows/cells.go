package rows

import "github.com/oversell/oversell/internal/explore/schedule"

// A cell identifies a column of a row in a table. An empty column means all columns, an empty key all rows, and an
// empty table all tables.
type cell struct{ table, column, key string }

type cellChange struct {
	cell
	buyer  int
	conn   any
	at     int  // number of commands executed before the change
	undone bool // the change is a rollback
}

// covers reports whether the change may have changed the given cell.
func (s cellChange) covers(one cell) bool {
	return s.table == "" || s.table == one.table && (s.column == "" || s.column == one.column) && (s.key == "" || schedule.SameValue(s.key, one.key))
}

// foreign returns the table of a cell that one buyer relied on and another buyer changed; "" if there is none.
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

// overtaken returns the table of a cell that command u relied on, if the same buyer has changed the cell on another
// connection since the command arrived. It returns "" if there is none.
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
