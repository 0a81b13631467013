package schedule

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Footprint lists the rows that a command uses in its database. A command with an empty Footprint commutes
// with every command of other buyers.
type Footprint []Touch

// A Touch is one use of rows of a table.
type Touch struct {
	Use   Use
	Table string
	// Fixed maps a column to its possible values in the used rows. It excludes rows with any other value.
	Fixed map[string][]string
	// Keys reports that rows are inserted or deleted, or that their keys change. It matters only for Locks and Shows.
	Keys bool
	// Index is the unique index that a use of kind Claims changes.
	Index string
	// Held reports a lock that the command's transaction holds already. If Table is "", the transaction may hold any
	// lock.
	Held bool
}

// A Use is a way in which a command uses rows, in a database in which readers see only committed rows.
type Use byte

const (
	Sees   Use = iota // reads committed rows
	Locks             // locks rows, so that no other transaction changes them
	Checks            // checks that the row of a foreign key exists, and prevents its deletion
	Claims            // adds keys to a unique index, or removes them
	Shows             // commits changes, so that other transactions see them
	Draws             // writes a row whose position among other buyers' rows matters: its key, time, or order on disk
)

// Special values.
const (
	Null  = "\x00null"
	Fresh = "\x00fresh" // a value that no other row has
)

// Commutes reports whether two commands of different buyers commute: in either order, each has the same result, and
// the rows are the same.
//
// If two waits close a cycle, their order matters: the command that waits later becomes the deadlock's victim. Commutes
// checks only cycles of two waits. A longer cycle of two buyers includes two commands of one buyer. Then that buyer
// waits in the server twice, or has another command at its gate. At such a point, Point.Mixed is true, so no two
// choices commute.
func (f Footprint) Commutes(g Footprint) bool {
	for i := range f {
		for k := range g {
			if f[i].Meets(g[k]) {
				return false
			}
		}
	}
	return !(f.waits(g) && g.waits(f))
}

// waits reports whether a command may wait for a lock that the other command's transaction already has.
func (f Footprint) waits(g Footprint) bool {
	for _, held := range g {
		if !held.Held {
			continue
		}
		held.Held = false
		for _, t := range f {
			if t.locks() && (held.Table == "" || t.Meets(held)) {
				return true
			}
		}
	}
	return false
}

// locks reports whether the use may wait for another transaction.
func (t Touch) locks() bool { return !t.Held && (t.Use == Locks || t.Use == Checks || t.Use == Claims) }

// Holding adds the transaction's earlier locks to the footprint of a command that may wait. If `unknown` is true, the
// transaction may hold any lock.
func (f Footprint) Holding(before Footprint, unknown bool) Footprint {
	may := false
	for _, t := range f {
		may = may || t.locks()
	}
	if !may {
		return f
	}
	if unknown {
		return append(f, Touch{Use: Locks, Held: true})
	}
	for _, t := range before {
		if t.locks() {
			t.Held = true
			f = append(f, t)
		}
	}
	return f
}

// Meets reports whether the order of two uses may matter.
func (t Touch) Meets(other Touch) bool {
	if t.Table != other.Table || t.Held || other.Held {
		return false
	}
	if t.Use > other.Use {
		t, other = other, t
	}
	switch {
	case t.Use == Draws:
		return other.Use == Draws
	case t.Use == Claims || other.Use == Claims:
		if t.Use != other.Use || t.Index != other.Index {
			return false
		}
	case t.Use == Sees:
		if other.Use != Shows {
			return false
		}
	case t.Use == Locks:
		if other.Use == Checks && !t.Keys {
			return false
		}
	case t.Use == Checks:
		if other.Use != Shows || !other.Keys {
			return false
		}
	}
	if other.Use == Draws {
		return false
	}
	for column, values := range t.Fixed {
		if apart(values, other.Fixed[column]) {
			return false
		}
	}
	return true
}

// apart reports whether the two lists of possible values exclude each other. An empty list means any value.
func apart(some, others []string) bool {
	for _, a := range some {
		for _, b := range others {
			if SameValue(a, b) {
				return false
			}
		}
	}
	return len(some) > 0 && len(others) > 0
}

// SameValue reports whether two values may be equal.
func SameValue(a, b string) bool {
	switch {
	case a == Fresh && b == Fresh:
		return false
	case a == Null || b == Null, a == b:
		return a == b
	}
	return a == Fresh || b == Fresh || strings.HasPrefix(a, "<") != strings.HasPrefix(b, "<") // a value with a name, such as <orders.1>, may equal a constant
}

// String returns a text that is the same for equal footprints.
func (f Footprint) String() string {
	var all []string
	for _, t := range f {
		one := fmt.Sprint(t.Use, t.Keys, t.Held, " ", t.Table, " ", t.Index)
		for _, column := range slices.Sorted(maps.Keys(t.Fixed)) {
			one += fmt.Sprintf(" %q=%q", column, t.Fixed[column])
		}
		all = append(all, one)
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), "\n")
}
