package explore

import (
	"slices"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// inherit puts to sleep what was or will be explored from the parent, and is
// independent of the step that led here (sleep sets, Godefroid).
func (n *node) inherit() {
	if n.parent == nil {
		return
	}
	before := n.parent.choices[:slices.Index(n.parent.choices, n.by)]
	for _, c := range slices.Concat(n.parent.sleep, before) {
		if independent(c, n.by) {
			n.sleep = append(n.sleep, c)
		}
	}
}

// independent: the two steps may change places, and no server, nor any buyer,
// can tell.
func independent(a, b *schedule.Choice) bool {
	events := a.Event != "" || b.Event != ""
	switch {
	case a.Global || b.Global:
		return false
	case a.Buyer == b.Buyer && a.Buyer != 0 && (events || a.Background || b.Background):
		// A renewal may end the buyer's section, and the buyer the renewals; and what
		// it sends after a time-out is its section's answer to the error.
		return false
	case a.Buyer == b.Buyer && !events:
		return a.Touches != b.Touches // both on their way at once: two Redlock nodes
	case a.Event != "" && b.Event != "":
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
