// Package host has the games of a shop: each is a child process, which ends with the page that
// plays it, or when nobody has moved for long, and never more than a bounded number at once.
package host

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/play"
	"github.com/oversell/oversell/internal/play/child"
	"github.com/oversell/oversell/internal/play/level"
)

// Bounds of a Host.
const (
	Most  = 30               // games at once
	Idle  = 10 * time.Minute // a game ends in which nobody has moved for so long
	Grace = 15 * time.Second // a game ends whose page has gone for so long: a reload takes less
)

// A Host has the games. Its methods may be called by several goroutines.
type Host struct {
	// Command is that of one child: this program, with the arguments that have it call
	// child.Serve.
	Command func() (*exec.Cmd, error)
	// After calls f when d is over, unless stop is called first; nil: the real time.
	After func(d time.Duration, f func()) (stop func())
	// Most, Idle and Grace are the bounds; 0: those above.
	Most        int
	Idle, Grace time.Duration

	// Searches is how many hints and proofs are searched for at once, so that a click in
	// another game is answered meanwhile; 0: as many as half of the processors.
	Searches int

	mu     sync.Mutex
	line   chan struct{} // whoever searches has put one in
	games  map[string]*game
	coming int // games whose child is about to open
	closed bool
	ending sync.WaitGroup
}

// errFull: there are as many games as there may be.
type errFull struct{ most int }

func (e errFull) Error() string {
	return fmt.Sprintf("%d games are being played; try again when one has ended", e.most)
}

var (
	errNoGame = errors.New("there is no such game, or it has ended; begin another one")
	errClosed = errors.New("the shop is stopping")
)

// errAnswer is what a child said of a request: nothing has changed.
type errAnswer struct{ child.Answer }

func (e errAnswer) Error() string { return e.Answer.Error }

// A game is one child.
type game struct {
	id      string
	level   *level.Level // nil: none
	process *process

	asking sync.Mutex // one request at a time

	mu       sync.Mutex
	at       play.Position
	pages    map[chan<- event]bool // open streams
	idle     func()                // stops the timer
	leaving  func()                // stops the timer; nil: it does not run
	finished bool

	over chan struct{} // closed when the game has ended; why says how
	why  string
}

// An event is for the page of a game.
type event struct {
	name string
	data any
}

func (h *Host) after(d time.Duration, f func()) (stop func()) {
	if h.After != nil {
		return h.After(d, f)
	}
	t := time.AfterFunc(d, f)
	return func() { t.Stop() }
}

// create begins a game.
func (h *Host) create(c play.Config, level *level.Level) (*game, error) {
	if err := h.reserve(); err != nil {
		return nil, err
	}
	g, err := h.open(c, level)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.coming--
	if err != nil {
		return nil, err
	}
	if h.closed {
		g.process.kill()
		return nil, errClosed
	}
	if h.games == nil {
		h.games = map[string]*game{}
	}
	h.games[g.id] = g
	go h.watch(g)
	return g, nil
}

// reserve takes a place, before a child is started for it.
func (h *Host) reserve() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	most := cmp.Or(h.Most, Most)
	switch {
	case h.closed:
		return errClosed
	case len(h.games)+h.coming >= most:
		return errFull{most}
	}
	h.coming++
	return nil
}

// open starts the child.
func (h *Host) open(c play.Config, level *level.Level) (*game, error) {
	cmd, err := h.Command()
	if err != nil {
		return nil, err
	}
	p, err := start(cmd)
	if err != nil {
		return nil, fmt.Errorf("start the game's process: %w", err)
	}
	a, err := p.ask(child.Request{Op: child.Open, Config: &c}, nil, nil)
	switch {
	case err != nil:
		p.end()
		return nil, fmt.Errorf("the game did not begin: %s", err) // it has never been one that can be gone
	case a.Error != "":
		p.end()
		return nil, errAnswer{a}
	case a.Position == nil:
		p.end()
		return nil, errors.New("the game did not begin: its process has no position")
	}
	g := &game{id: rand.Text(), level: level, process: p, pages: map[chan<- event]bool{}, idle: func() {}, at: *a.Position, over: make(chan struct{})}
	h.touch(g)
	return g, nil
}

// watch ends a game whose child has ended by itself.
func (h *Host) watch(g *game) {
	<-g.process.gone
	h.end(g, g.process.ended().Error())
}

// touch notes that somebody plays.
func (h *Host) touch(g *game) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.finished {
		return
	}
	idle := cmp.Or(h.Idle, Idle)
	g.idle()
	g.idle = h.after(idle, func() {
		h.end(g, fmt.Sprintf("nobody has moved for %.0f minutes: the game has ended; begin another one", idle.Minutes()))
	})
}

// find is the game with this id.
func (h *Host) find(id string) (*game, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if g := h.games[id]; g != nil {
		return g, nil
	}
	return nil, errNoGame
}

// inLine waits until it may search. leave must follow.
func (h *Host) inLine(ctx context.Context) (leave func(), err error) {
	h.mu.Lock()
	if h.line == nil {
		h.line = make(chan struct{}, cmp.Or(h.Searches, max(1, runtime.NumCPU()/2)))
	}
	h.mu.Unlock()
	select {
	case h.line <- struct{}{}:
		return func() { <-h.line }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// search is ask of what may take long.
func (h *Host) search(ctx context.Context, g *game, r child.Request) (child.Answer, error) {
	leave, err := h.inLine(ctx)
	if err != nil {
		return child.Answer{}, err
	}
	defer leave()
	return h.ask(ctx, g, r)
}

// ask has a game's child do something. When ctx ends so does the search that it makes.
func (h *Host) ask(ctx context.Context, g *game, r child.Request) (child.Answer, error) {
	h.touch(g)
	g.asking.Lock()
	defer g.asking.Unlock()
	a, err := g.process.ask(r, func(p child.Progress) { g.tell(event{"progress", p}) }, ctx.Done())
	h.touch(g)
	switch {
	case err != nil:
		h.end(g, err.Error())
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

// position is where the game stands, as its child said last.
func (g *game) position() play.Position {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.at
}

// end ends a game, and tells its pages why.
func (h *Host) end(g *game, why string) {
	h.mu.Lock()
	known := h.games[g.id] == g
	delete(h.games, g.id)
	if known {
		h.ending.Add(1)
	}
	h.mu.Unlock()
	if !known {
		return
	}
	g.mu.Lock()
	g.finished, g.why = true, why
	g.idle()
	if g.leaving != nil {
		g.leaving()
	}
	g.mu.Unlock()
	close(g.over)
	go func() {
		defer h.ending.Done()
		g.process.end()
	}()
}

// Close ends all games, and returns when their processes have ended. It may be called twice.
func (h *Host) Close() {
	h.mu.Lock()
	h.closed = true
	var all []*game
	for _, g := range h.games {
		all = append(all, g)
	}
	h.mu.Unlock()
	for _, g := range all {
		h.end(g, errClosed.Error())
	}
	h.ending.Wait()
}

// mostPages is how many streams of one game are served.
const mostPages = 8

// buffered events wait for a slow page; what comes beyond is lost to it.
const buffered = 16

// join is a page that shows the game; false when there are too many.
func (h *Host) join(g *game) (events chan event, leave func(), joined bool) {
	events = make(chan event, buffered)
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.pages) >= mostPages {
		return nil, nil, false
	}
	g.pages[events] = true
	if g.leaving != nil {
		g.leaving()
		g.leaving = nil
	}
	return events, func() { h.leave(g, events) }, true
}

// leave: a page has gone. When it was the last one the game has not long to live.
func (h *Host) leave(g *game, events chan event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.pages, events)
	if len(g.pages) == 0 && !g.finished {
		g.leaving = h.after(cmp.Or(h.Grace, Grace), func() { h.end(g, "its page was closed: the game has ended") })
	}
}

// tell tells the pages something.
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
