package play

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/explore"
)

// A round is one run of the explorer, from the first command on. Undo, hints and proofs end the round and
// begin another one, which first repeats the steps that the player keeps.
type round struct {
	begun  time.Time
	prefix []string      // steps that the round repeats first
	moves  chan string   // steps of the player
	leave  chan struct{} // closed to end the round
	stands chan Position // positions in which the round waits for a move
	ended  chan ending   // receives one value at the end of the run

	config Config
	made   []string
	last   Position // position at the end
}

type ending struct {
	explore.Ended
	witness *explore.Witness
	err     error
}

// begin starts a round and returns when the round has run the given steps. If that fails, the game keeps its
// position and has no round. The player's next step then begins one.
func (g *Game) begin(tokens []string) error {
	g.leave()
	r := &round{
		begun: g.now(), prefix: slices.Clone(tokens), moves: make(chan string), leave: make(chan struct{}),
		stands: make(chan Position), ended: make(chan ending, 1), config: g.config,
	}
	g.round = r
	go func() {
		e, w, err := g.explorer.Play(g.ctx, func(p *explore.Point) (string, error) { return r.choose(g.ctx, p) })
		r.ended <- ending{e, w, err}
	}()
	return g.arrive(tokens)
}

func (g *Game) leave() {
	if g.round == nil {
		return
	}
	close(g.round.leave)
	for over := false; !over; {
		select {
		case <-g.round.stands:
		case <-g.round.ended:
			over = true
		}
	}
	g.round = nil
}

// arrive waits until the round has run these steps, and waits for a move or has ended.
func (g *Game) arrive(tokens []string) error {
	select {
	case p := <-g.round.stands:
		g.at, g.tokens = p, tokens
		return nil
	case e := <-g.round.ended:
		last := g.round.last
		g.round = nil
		switch {
		case e.err != nil:
			return e.err
		case e.Cut:
			return fmt.Errorf("%w: it goes round in circles: this is the most steps that a schedule has; undo or restart", ErrBadMove)
		case e.witness == nil:
			return ErrClosed
		}
		end, err := newEnd(g.config, e.Ended, e.witness)
		if err != nil {
			return err
		}
		last.End, last.Steps, last.Choices = end, e.Steps, []Choice{}
		g.at, g.tokens = last, tokens
		return nil
	}
}

// choose returns the next step to the explorer: first the steps of the prefix, then the player's.
func (r *round) choose(ctx context.Context, p *explore.Point) (token string, err error) {
	if p.Depth < len(r.prefix) && !p.AtEnd() {
		token = r.prefix[p.Depth]
		r.made = append(r.made, token)
		return token, nil
	}
	v, err := p.View()
	if err != nil {
		return "", err
	}
	now := newPosition(r.config, p.Choices, v, r.made)
	if p.AtEnd() {
		r.last = now
		return p.FirstMove(), nil
	}
	select {
	case r.stands <- now:
	case <-r.leave:
		return "", nil
	case <-ctx.Done():
		return "", nil
	}
	select {
	case token = <-r.moves:
		r.made = append(r.made, token)
		return token, nil
	case <-r.leave:
	case <-ctx.Done():
	}
	return "", nil
}
