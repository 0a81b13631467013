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

// A pause is what is known of pauses in a step of a run.
type pause struct {
	wanted string                // the token of the move that is to be made in it; "": none, or it is made
	of     int                   // the buyer that pauses while another moves; 0: none
	seen   int                   // the first buyer that paused in the step
	roles  map[*wire.Conn]string // what each connection has carried in this run
}

// interpose makes the wanted move. It is called when a buyer pauses.
func (r *run) interpose(ctx context.Context) error {
	token := r.pause.wanted
	r.pause.wanted, r.pause.of = "", r.current
	moves, err := choices{r}.ready()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(moves, func(m move) bool { return m.Token == token && m.Buyer != r.current })
	if at < 0 {
		r.pause.wanted = token
		return schedule.Void{Why: "another buyer than before has paused", Missed: true}
	}
	m := moves[at]
	if m.Make != nil {
		m.Text += fmt.Sprintf(", while buyer %d pauses", r.pause.of)
		r.record.happened(m)
		return m.Make(ctx)
	}
	r.record.sent(m.Command)
	r.current = m.Buyer
	r.x.floor.letGo(m.Command)
	return nil
}

// pauses reports whether the buyer that was let go last is inside the program, which naps.
func (r settling) pauses() bool {
	f := r.x.floor
	f.mu.Lock()
	defer f.mu.Unlock()
	is := r.x.shared && slices.Contains(r.inside(), r.current)
	if is && r.pause.seen == 0 {
		r.pause.seen = r.current
	}
	return is
}

// paused is the buyer that paused in the last step and went on by itself; 0: none. One that is still
// inside waits for another, for a mutex maybe: what looked like its pause was another timer's.
func (r *run) paused() int {
	f := r.x.floor
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.Contains(r.rest.inside(), r.pause.seen) {
		return 0
	}
	return r.pause.seen
}

// interposed checks, when the program has come to rest after the move, that the pause goes on.
func (r settling) interposed(napping bool) error {
	f := r.x.floor
	f.mu.Lock()
	inside := slices.Contains(r.inside(), r.pause.of)
	f.mu.Unlock()
	r.pause.of = 0
	if !inside || !napping {
		return schedule.Void{Why: "a pause in the program was over before another buyer had moved", Missed: true, Seen: true}
	}
	return nil
}

// noPause is the error of a step in which a move was to be made in a pause that did not come.
func (r *run) noPause() error {
	if r.pause.wanted == "" {
		return nil
	}
	return schedule.Void{Why: "a pause in the program did not come again", Missed: true}
}

// standing is schedule.Point.Standing.
func (r *run) standing() string {
	f := r.x.floor
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for _, o := range slices.Concat(f.held, f.flying) {
		all = append(all, fmt.Sprintf("%d %s on %q", o.buyer, r.whose.usual(o.name), r.pause.roles[o.Conn()]))
	}
	slices.Sort(all)
	return fmt.Sprint(r.rest.inside(), all)
}

// carried notes what a connection has carried.
func (r *run) carried(o *op) {
	r.pause.roles[o.Conn()] += fmt.Sprintf("%d %s;", o.buyer, r.whose.usual(o.name))
}
