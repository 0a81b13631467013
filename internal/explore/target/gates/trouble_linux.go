package gates

import (
	"errors"
	"io"
	"sync"

	"github.com/oversell/oversell/internal/explore/wire"
)

// Trouble knows why this run is void (to be discarded), or why the programs cannot be explored at all.
type Trouble struct {
	mu      *sync.Mutex
	dead    map[int]bool // by buyer: its program was killed in this run
	broken  *HangUp      // the first connection whose end makes the run void; nil: none
	refused error        // why the programs cannot be explored; nil: they can, as far as is known
}

// A HangUp is a command whose connection ended before its answer.
type HangUp struct {
	Op  *Op
	Err error
}

// Broken returns the first command of the run whose program or server hung up; nil if there is none. The error says why
// the program cannot be explored, if a gate has found that out.
func (t *Trouble) Broken() (*HangUp, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.broken, t.refused
}

// OrRefused returns why the program cannot be explored, if the gates know a reason, and otherwise err.
func (t *Trouble) OrRefused(err error) error {
	if _, refused := t.Broken(); refused != nil {
		return refused
	}
	return err
}

// Kill records that the buyer's program is killed, so the end of its connections does not make the run void.
func (t *Trouble) Kill(buyer int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dead[buyer] = true
}

func (t *Trouble) left(c *wire.Conn, err error, theirs []*Op) {
	if refused := new(wire.Refused); errors.As(err, &refused) && t.refused == nil {
		t.refused = refused
	}
	if len(theirs) > 0 && t.broken == nil && !t.dead[c.Buyer] && !errors.Is(err, io.ErrClosedPipe) {
		t.broken = &HangUp{theirs[0], err}
	}
}

func (t *Trouble) clear() { t.broken, t.dead = nil, map[int]bool{} }
