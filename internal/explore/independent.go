package explore

import "github.com/oversell/oversell/internal/explore/schedule"

// independent reports whether two steps can change places without any server or buyer noticing, so that
// the state is the same.
func independent(a, b *schedule.Choice) bool {
	switch {
	case a.Global || b.Global, a.Buyer == b.Buyer && a.Buyer != 0:
		return false
	case a.Effect == schedule.Local || b.Effect == schedule.Local:
		return true
	case a.Touches == "" || b.Touches == "": // every Redis
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

// usesNothing reports whether a command uses no row, such as a SAVEPOINT.
func usesNothing(c *schedule.Choice) bool { return c.Footprint != nil && len(*c.Footprint) == 0 }
