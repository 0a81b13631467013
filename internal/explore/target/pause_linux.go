package target

import (
	"context"
	"fmt"
	"slices"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/target/client"
	"github.com/oversell/oversell/internal/explore/target/gates"
	"github.com/oversell/oversell/internal/explore/target/naming"
	"github.com/oversell/oversell/internal/explore/wire"
)

// In a shared instance, a buyer pauses when it calls another service or sleeps. Before the pause, it may have returned
// its connection to a pool. If another buyer moves in the pause, the first buyer may get another connection afterwards.
// The explorer cannot stop the program's clock, so it makes the other buyer's move as soon as it notices the pause. If
// the pause ends before that move is complete, their order is unknown, and the run is void: discarded and repeated.

// A pause makes the move of one buyer while another buyer pauses. It also records which commands each connection has
// carried.
type pause struct {
	shared  bool
	table   *gates.Table
	buyers  *client.Buyers
	names   *naming.Names
	whose   *attribution
	choices *choices
	record  *recorder

	wanted      string                // token of the move to make in a pause; "": none is required, or it was made
	pausing     int                   // the buyer that pauses while another moves; 0: none
	firstPaused int                   // the first buyer that paused in the step; 0: none
	roles       map[*wire.Conn]string // the commands that each connection has carried in this run
}

// begin begins a step. The parameter `wanted` is the token of a move to make in a pause, or "".
func (p *pause) begin(wanted string) { p.wanted, p.pausing, p.firstPaused = wanted, 0, 0 }

// moveInPause makes the wanted move if a buyer pauses. The program must be idle, and `sleeps` reports that one of its
// timers runs. If the pause was missed, the error is a schedule.Void.
func (p *pause) moveInPause(ctx context.Context, sleeps bool) (made bool, _ error) {
	if p.pausing != 0 {
		if err := p.checkLasted(sleeps); err != nil {
			return false, err
		}
	}
	if !sleeps || !p.pauses() || p.wanted == "" {
		return false, nil
	}
	return true, p.interpose(ctx)
}

// interpose makes the wanted move while the current buyer pauses.
func (p *pause) interpose(ctx context.Context) error {
	token, current := p.wanted, p.buyers.Current
	p.wanted, p.pausing = "", current
	moves, err := p.choices.ready()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(moves, func(m move) bool { return m.Token == token && m.Buyer != current })
	if at < 0 {
		p.wanted = token
		return schedule.Void{Why: "another buyer than before has paused", Missed: true}
	}
	m := moves[at]
	p.whose.released()
	if m.Make != nil {
		m.Text += fmt.Sprintf(", while buyer %d pauses", p.pausing)
		p.record.happened(m)
		return m.Make(ctx)
	}
	p.record.sent(m.Command)
	p.buyers.Current = m.Buyer
	p.table.LetGo(m.Command)
	return nil
}

// pauses reports whether the current buyer pauses inside the program. It records the first buyer that does. One of the
// program's timers must be running.
func (p *pause) pauses() bool {
	is := p.shared && p.isInside(p.buyers.Current)
	if is && p.firstPaused == 0 {
		p.firstPaused = p.buyers.Current
	}
	return is
}

// last returns the buyer that paused in the last step and continued by itself; 0 if there is none. If the buyer's
// request is still inside the program, the buyer waits for something else, perhaps a mutex. Then the timer was not its
// pause.
func (p *pause) last() int {
	if p.isInside(p.firstPaused) {
		return 0
	}
	return p.firstPaused
}

// checkLasted returns an error if the pause ended before the other buyer's move was complete.
func (p *pause) checkLasted(sleeps bool) error {
	inside := p.isInside(p.pausing)
	p.pausing = 0
	if !inside || !sleeps {
		return schedule.Void{Why: "a pause in the program was over before another buyer had moved", Missed: true, Seen: true}
	}
	return nil
}

func (p *pause) isInside(buyer int) bool {
	return slices.Contains(p.buyers.Inside(p.table.Now()), buyer)
}

// end returns an error if the schedule requires a move in a pause, and no buyer has paused in this step.
func (p *pause) end() error {
	if p.wanted == "" {
		return nil
	}
	return schedule.Void{Why: "a pause in the program did not come again", Missed: true}
}

func (p *pause) standing() string {
	now := p.table.Now()
	var all []string
	for _, o := range slices.Concat(now.Held, now.Flying) {
		all = append(all, fmt.Sprintf("%d %s on %q", o.Buyer, p.names.Usual(o.Name), p.roles[o.Conn()]))
	}
	slices.Sort(all)
	return fmt.Sprint(p.buyers.Inside(now), all)
}

func (p *pause) carried(o *gates.Op) {
	p.roles[o.Conn()] += fmt.Sprintf("%d %s;", o.Buyer, p.names.Usual(o.Name))
}
