package explore

import "github.com/oversell/oversell/internal/explore/schedule"

// independent reports whether two steps commute: in both orders, every server and buyer sees the same, and the state
// afterwards is the same. If one buyer sent both commands, they must be in flight at the same time.
func independent(a, b *schedule.Choice) bool {
	switch {
	case a.Global || b.Global, a.Buyer == b.Buyer && a.Buyer != 0 && !inAnyOrder(a, b):
		return false
	case a.Effect == schedule.Local || b.Effect == schedule.Local:
		return true
	case a.Touches == "" || b.Touches == "": // an empty Touches means every Redis server
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

// inAnyOrder reports whether the user accepts both orders of two commands of one buyer. The order of two writes at one
// server always matters: in a deadlock with a third transaction, the later one may be the victim. Also, the order
// determines the keys that the server generates.
func inAnyOrder(a, b *schedule.Choice) bool {
	return a.AnyOrder && b.AnyOrder && (a.Effect != schedule.Writes || b.Effect != schedule.Writes || a.Touches != b.Touches)
}

// usesNothing reports whether a command is known to use no rows, as SAVEPOINT does.
func usesNothing(c *schedule.Choice) bool { return c.Footprint != nil && len(*c.Footprint) == 0 }
