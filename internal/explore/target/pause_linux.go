package target

import (
	"context"
	"fmt"
	"slices"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/wire"
)

// Where all buyers share one instance, a buyer that pauses in the program (a call of another
// service, a sleep) may have given its connection back to a pool. Which connection it gets next
// depends on whether another buyer moves in that pause. No clock is stopped: the other buyer's move
// is made as soon as the pause is seen, and the run shows nothing if the pause was over before the
// program came to rest again.

// A pause alone knows which buyers pause in a step of a run, which move is to be made in such a
// pause, and what each connection has carried in the run.
type pause struct {
	r      *run
	wanted string                // the token of the move that is to be made in it; "": none, or it is made
	of     int                   // the buyer that pauses while another moves; 0: none
	seen   int                   // the first buyer that paused in the step
	roles  map[*wire.Conn]string // what each connection has carried in this run
}

// begin begins a step. wanted is the token of the move that is to be made in a pause; "": none.
func (p *pause) begin(wanted string) { p.wanted, p.of, p.seen = wanted, 0, 0 }

// look is called when the program has come to rest, naps or not. made reports whether it has made the
// wanted move. The error is a schedule.Void: the run shows nothing of the pause.
func (p *pause) look(ctx context.Context, naps bool) (made bool, _ error) {
	if p.of != 0 {
		if err := p.goesOn(naps); err != nil {
			return false, err
		}
	}
	if !naps || !p.pauses() || p.wanted == "" {
		return false, nil
	}
	return true, p.interpose(ctx)
}

// interpose makes the wanted move. It is called when a buyer pauses.
func (p *pause) interpose(ctx context.Context) error {
	r, token := p.r, p.wanted
	p.wanted, p.of = "", r.current
	moves, err := choices{r}.ready()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(moves, func(m move) bool { return m.Token == token && m.Buyer != r.current })
	if at < 0 {
		p.wanted = token
		return schedule.Void{Why: "another buyer than before has paused", Missed: true}
	}
	m := moves[at]
	if m.Make != nil {
		m.Text += fmt.Sprintf(", while buyer %d pauses", p.of)
		r.record.happened(m)
		return m.Make(ctx)
	}
	r.record.sent(m.Command)
	r.current = m.Buyer
	r.x.floor.letGo(m.Command)
	return nil
}

// pauses reports whether the buyer that was let go last is inside the program, which naps.
func (p *pause) pauses() bool {
	is := p.r.x.shared && p.isInside(p.r.current)
	if is && p.seen == 0 {
		p.seen = p.r.current
	}
	return is
}

// last is the buyer that paused in the last step and went on by itself; 0: none. One that is still
// inside waits for another, for a mutex maybe: what looked like its pause was another timer's.
func (p *pause) last() int {
	if p.isInside(p.seen) {
		return 0
	}
	return p.seen
}

// goesOn checks, when the program has come to rest after the move, that the pause goes on.
func (p *pause) goesOn(naps bool) error {
	inside := p.isInside(p.of)
	p.of = 0
	if !inside || !naps {
		return schedule.Void{Why: "a pause in the program was over before another buyer had moved", Missed: true, Seen: true}
	}
	return nil
}

// isInside reports whether a buyer is inside the program.
func (p *pause) isInside(buyer int) bool {
	f := p.r.x.floor
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Contains(p.r.rest.inside(), buyer)
}

// end is the error of a step in which a move was to be made in a pause that did not come.
func (p *pause) end() error {
	if p.wanted == "" {
		return nil
	}
	return schedule.Void{Why: "a pause in the program did not come again", Missed: true}
}

// standing is schedule.Point.Standing.
func (p *pause) standing() string {
	r, f := p.r, p.r.x.floor
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for _, o := range slices.Concat(f.held, f.flying) {
		all = append(all, fmt.Sprintf("%d %s on %q", o.buyer, r.whose.usual(o.name), p.roles[o.Conn()]))
	}
	slices.Sort(all)
	return fmt.Sprint(r.rest.inside(), all)
}

// carried notes what a connection has carried.
func (p *pause) carried(o *op) {
	p.roles[o.Conn()] += fmt.Sprintf("%d %s;", o.buyer, p.r.whose.usual(o.name))
}
