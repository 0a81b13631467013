package effect

import (
	"slices"
	"strings"
)

// A lock is a lock on rows of a table. A text keeps it to the end of its transaction.
type lock struct {
	table string
	row   string // a name of the locked row, the same for each lock on this row; "": unknown, or several rows
}

// locks records the locks of a statement that changes or locks existing rows.
func (w *walk) locks(table string, t []token, s place) {
	t = s.known(t)
	if len(t) > 0 && (t[0].is("INSERT") || t[0].is("REPLACE")) { // an upsert locks its rows in the order of its values
		for _, key := range keys(t) {
			w.order = append(w.order, lock{table, "row " + table + " " + key})
		}
		return
	}
	condition := t[where(t):]
	if end := slices.IndexFunc(condition, func(one token) bool { return one.is("RETURNING") || one.is("FOR") }); end > 0 {
		condition = condition[:end]
	}
	w.order = append(w.order, lock{table, locksRow(table, condition)})
}

// keys returns the first value of each row of an INSERT, which is most likely the row's key.
func keys(t []token) (all []string) {
	at := slices.IndexFunc(t, func(one token) bool { return one.is("VALUES") })
	for at >= 0 && at+1 < len(t) && t[at+1].text == "(" {
		end := closing(t, at+1)
		if first := items(t[at+2 : end]); len(first) > 0 {
			all = append(all, strings.ToLower(join(first[0])))
		}
		if at = end + 1; at >= len(t) || t[at].text != "," {
			break
		}
	}
	return all
}

// Crosses reports whether two texts, each in one transaction, lock two tables, or two rows, in opposite orders.
// Then each may wait for the other, and the server refuses one of them. The parameter `inside` says whether a
// transaction was open before this text, and `theirs` whether one was open before the other text.
func (u *Uses) Crosses(other *Uses, inside, theirs bool) bool {
	for _, a := range u.orders(inside) {
		for _, b := range other.orders(theirs) {
			if crosses(a, b) {
				return true
			}
		}
	}
	return false
}

func (u *Uses) orders(inside bool) [][]lock {
	if inside {
		return u.OrdersInside
	}
	return u.Orders
}

// crosses compares two transactions. If both first lock the same row, they run one after the other and
// do not cross.
func crosses(a, b []lock) bool {
	for j := range a {
		for l := range b {
			before, theirs := a[:j], b[:l]
			if slices.ContainsFunc(before, func(one lock) bool { return one.row != "" && slices.Contains(theirs, one) }) {
				continue
			}
			// At a[j], the first transaction waits for a lock that the second took before b[l]. At
			// b[l], the second waits for a lock that the first took before a[j].
			holds := slices.ContainsFunc(before, func(one lock) bool { return meets(one, b[l], a[j].table) })
			waits := slices.ContainsFunc(theirs, func(one lock) bool { return meets(one, a[j], b[l].table) })
			if holds && waits && a[j] != b[l] {
				return true
			}
		}
	}
	return false
}

// meets reports whether two of a crossing's four locks may be on the same row. The parameter `other` is
// the table of the remaining two. If all four are on one table, locks on unknown rows do not count,
// since their order is unknown, too.
func meets(a, b lock, other string) bool {
	known := a.row != "" && b.row != ""
	return a.table == b.table && (known && a.row == b.row || !known && a.table != other)
}
