package explore

import "github.com/oversell/oversell/internal/explore/schedule"

// independent reports whether two steps commute: in either order, each server and buyer sees the same, and the state
// afterwards is the same.
func independent(a, b *schedule.Choice) bool {
	switch {
	case a.Global || b.Global, a.Buyer == b.Buyer && a.Buyer != 0:
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

// usesNothing reports whether a command is known to use no rows. An example is SAVEPOINT.
func usesNothing(c *schedule.Choice) bool { return c.Footprint != nil && len(*c.Footprint) == 0 }
