package explore

import "github.com/oversell/oversell/internal/explore/schedule"

// independent reports whether two steps commute: in either order, each server and buyer sees the same, and the state
// afterwards is the same. Two commands of one buyer must be under way at the same time.
func independent(a, b *schedule.Choice) bool {
	switch {
	case a.Global || b.Global, a.Buyer == b.Buyer && a.Buyer != 0 && !inAnyOrder(a, b):
		return false
	case a.Effect == schedule.Local || b.Effect == schedule.Local:
		return true
	case a.Touches == "" || b.Touches == "": // "": every Redis server
		return a.Touches == schedule.Database || b.Touches == schedule.Database
	case a.Touches != b.Touches:
		return true
	case usesNothing(a) || usesNothing(b):
		return true
	case a.Footprint != nil && b.Footprint != nil:
		return a.Footprint.Commutes(*b.Footprint)
	}
	return a.Effect == schedule.Reads && b.Effect == schedule.Reads
}

// inAnyOrder reports whether a program permits two of a buyer's commands in either order. Two writes at one server keep
// their order: the later one may be the victim of a deadlock that involves a third transaction, and their generated keys
// differ.
func inAnyOrder(a, b *schedule.Choice) bool {
	return a.AnyOrder && b.AnyOrder && (a.Effect != schedule.Writes || b.Effect != schedule.Writes || a.Touches != b.Touches)
}

// usesNothing reports whether a command is known to use no rows. An example is SAVEPOINT.
func usesNothing(c *schedule.Choice) bool { return c.Footprint != nil && len(*c.Footprint) == 0 }
