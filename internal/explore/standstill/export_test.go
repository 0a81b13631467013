package standstill

import "bytes"

// Unseen are the marks that no stack has.
func (g *Goroutines) Unseen(stacks []byte) (unseen []string) {
	m := g.marks
	for _, mark := range append(m.ours, m.listener, m.sent, m.reads, m.connects, m.answer, m.rollback) {
		if !bytes.Contains(stacks, mark) {
			unseen = append(unseen, string(mark))
		}
	}
	return unseen
}

// Left is how many goroutines were there before.
func (g *Goroutines) Left() int { return len(g.left) }

// Waits reports whether a goroutine in that state, with these functions in its stack,
// cannot go on by itself.
func (g *Goroutines) Waits(state, functions string) bool {
	return g.marks.waits([]byte(functions), []byte(state))
}
