package host

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/oversell/oversell/internal/teach/play"
	"github.com/oversell/oversell/internal/teach/play/child"
	"github.com/oversell/oversell/internal/teach/play/level"
)

// A game is one child process and the pages that show it. It ends by itself after it has been idle for too
// long.
type game struct {
	host    *Host
	id      string
	from    string       // remote address; "": this machine
	level   *level.Level // may be nil
	process *process

	asking sync.Mutex // allows one request at a time

	mu       sync.Mutex
	at       play.Position
	pages    map[chan<- event]bool // open streams
	pending  int                   // number of requests without an answer
	idle     func()                // stops the timer of a game without moves
	leaving  func()                // stops the timer of a game without a page
	finished bool

	over chan struct{} // closed when the game has ended; the field why has the reason
	why  string
}

// An event is a message to the page of a game.
type event struct {
	name string
	data any
}

// waiting tells a player its place in the queue: 1 is the next one.
type waiting struct {
	Place int `json:"place"`
}

// search waits in the queue l, which limits the searches that run at once, and then sends a request that may
// take long.
func (g *game) search(ctx context.Context, l *searchQueue, r child.Request) (child.Answer, error) {
	g.busy()
	defer g.rested()
	leave, err := l.enter(ctx, func(place int) { g.tell(event{"progress", waiting{place}}) })
	if err != nil {
		return child.Answer{}, err
	}
	defer leave()
	return g.ask(ctx, r)
}

// ask sends a request to the game's child. When ctx ends, so does the search.
func (g *game) ask(ctx context.Context, r child.Request) (child.Answer, error) {
	g.busy()
	defer g.rested()
	g.asking.Lock()
	defer g.asking.Unlock()
	a, err := g.process.ask(r, func(p child.Progress) { g.tell(event{"progress", p}) }, ctx.Done())
	switch {
	case err != nil:
		g.end(err.Error())
		return a, err
	case a.Position != nil:
		g.mu.Lock()
		g.at = *a.Position
		g.mu.Unlock()
	}
	if a.Error != "" {
		return a, errAnswer{a}
	}
	return a, nil
}

// position returns the last position that the child reported.
func (g *game) position() play.Position {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.at
}

// end ends the game and tells its pages why.
func (g *game) end(why string) {
	if !g.host.forget(g) {
		return
	}
	g.mu.Lock()
	g.finished, g.why = true, why
	g.idle()
	g.leaving()
	g.mu.Unlock()
	close(g.over)
	g.host.release(g.from)
	go func() {
		defer g.host.ending.Done()
		g.process.end()
	}()
}

// mostPages is the maximum number of streams of one game.
const mostPages = 8

// buffered is how many events wait for a slow page. The page loses further events.
const buffered = 16

// join adds a page that shows the game. The result `joined` is false if there are too many pages.
func (g *game) join() (events chan event, leave func(), joined bool) {
	events = make(chan event, buffered)
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.pages) >= mostPages {
		return nil, nil, false
	}
	g.pages[events] = true
	g.leaving()
	return events, func() { g.leave(events) }, true
}

// leave removes a page. After the last page has left, the game ends soon.
func (g *game) leave(events chan event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.pages, events)
	g.alone()
}

func (g *game) tell(e event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for page := range g.pages {
		select {
		case page <- e:
		default:
		}
	}
}

// busy records a new request and stops the game's timers. They run only while every request has its answer.
// The caller must call rested when the answer has come.
func (g *game) busy() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pending++
	g.idle()
	g.leaving()
}

// rested records that a request has its answer.
func (g *game) rested() {
	g.mu.Lock()
	g.pending--
	g.mu.Unlock()
	g.rest()
}

// rest starts the timers of an idle game.
func (g *game) rest() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.finished || g.pending > 0 {
		return
	}
	idle := cmp.Or(g.host.Idle, Idle)
	g.idle()
	g.idle = g.host.after(idle, func() {
		if g.rests(false) {
			g.end(fmt.Sprintf("no move for %.0f minutes: the game has ended; start another one", idle.Minutes()))
		}
	})
	g.alone()
}

// alone starts the timer that ends a game without a page. The caller must hold g.mu.
func (g *game) alone() {
	g.leaving()
	if g.finished || g.pending > 0 || len(g.pages) > 0 {
		return
	}
	g.leaving = g.host.after(cmp.Or(g.host.Grace, Grace), func() {
		if g.rests(true) {
			g.end("no page shows it any more: the game has ended")
		}
	})
}

// rests reports whether the game is still idle when one of its timers ends. If `alone` is true, the game must
// also have no page.
func (g *game) rests(alone bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pending == 0 && !(alone && len(g.pages) > 0)
}
