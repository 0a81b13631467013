package standstill

import "strings"

// Unseen returns the marks that occur in no stack.
func (g *Goroutines) Unseen(stacks string) (unseen []string) {
	m := g.marks
	for _, mark := range append(m.ours, m.listener, m.sent, m.reads, m.connects, m.answer, m.rollback) {
		if !strings.Contains(stacks, mark) {
			unseen = append(unseen, mark)
		}
	}
	return unseen
}

// Left returns the number of goroutines that existed before NewGoroutines.
func (g *Goroutines) Left() int { return len(g.left) }

// Waits reports whether a goroutine in the given state, with these functions in its stack, cannot continue
// by itself.
func (g *Goroutines) Waits(state, functions string) bool {
	return g.marks.waits(functions, state)
}
