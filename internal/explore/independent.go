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
	}
	return a.Effect == schedule.Reads && b.Effect == schedule.Reads
}
