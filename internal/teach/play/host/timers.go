package host

import (
	"cmp"
	"fmt"
)

// busy notes that a request has come: while it has no answer, however long that takes, no
// timer runs. rested must follow.
func (g *game) busy() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pending++
	g.idle()
	g.leaving()
}

// rested notes that a request has its answer.
func (h *Host) rested(g *game) {
	g.mu.Lock()
	g.pending--
	g.mu.Unlock()
	h.rest(g)
}

// rest starts the timers of a game that is asked for nothing now.
func (h *Host) rest(g *game) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.finished || g.pending > 0 {
		return
	}
	idle := cmp.Or(h.Idle, Idle)
	g.idle()
	g.idle = h.after(idle, func() {
		if g.rests(false) {
			h.end(g, fmt.Sprintf("nobody has moved for %.0f minutes: the game has ended; begin another one", idle.Minutes()))
		}
	})
	h.alone(g)
}

// alone starts the timer of a game that no page shows: one that was closed, or never opened.
// g.mu is held.
func (h *Host) alone(g *game) {
	g.leaving()
	if g.finished || g.pending > 0 || len(g.pages) > 0 {
		return
	}
	g.leaving = h.after(cmp.Or(h.Grace, Grace), func() {
		if g.rests(true) {
			h.end(g, "no page shows it any more: the game has ended")
		}
	})
}

// rests reports whether a game is still asked for nothing when a timer of its is over, and,
// where that is wanted, shown by no page.
func (g *game) rests(alone bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pending == 0 && !(alone && len(g.pages) > 0)
}
