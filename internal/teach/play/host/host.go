// Package host runs the games of a shop. Each game is a child process. It ends after its last page has been
// closed, or after a time without moves. The number of games is limited.
package host

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/teach/play"
	"github.com/oversell/oversell/internal/teach/play/child"
	"github.com/oversell/oversell/internal/teach/play/level"
)

// Limits of a Host.
const (
	Most  = 30               // maximum number of games
	Idle  = 10 * time.Minute // a game without moves ends after this time
	Grace = 15 * time.Second // an idle game without a page ends after this time; a reload takes less
	Each  = 4                // maximum number of games from one remote address
)

// A Host holds the games, limits their number and ends them. Its methods may be called by any number
// of goroutines.
type Host struct {
	// Command returns the command of a child: this program, with arguments that make it call child.Serve.
	Command func() (*exec.Cmd, error)
	// After starts a timer that calls f after the duration d; `stop` cancels it. If After is nil, the host
	// uses real time.
	After func(d time.Duration, f func()) (stop func())
	// Most, Idle and Grace override the limits; 0: the limits above.
	Most        int
	Idle, Grace time.Duration

	// Public means that users of other machines may play. Then one address may have at most 4 games (Each), and
	// a search for a proof takes at most publicBudget.
	Public bool

	hints, proofs searchQueue // separate queues, so that hints do not wait for proofs

	mu      sync.Mutex
	games   map[string]*game
	places  map[string]int // number of games, by remote address
	taken   int            // number of games, including those that are about to open
	closing chan struct{}  // closed by Close
	closed  bool
	ending  sync.WaitGroup // children that have not ended or have not been waited for
}

type errFull struct{ most int }

func (e errFull) Error() string {
	return fmt.Sprintf("%d games are being played; try again when one has ended", e.most)
}

type errEach struct{ most int }

func (e errEach) Error() string {
	return fmt.Sprintf("%d games are being played from your address, as many as one may have; end one of them first", e.most)
}

var (
	errNoGame = errors.New("there is no such game, or it has ended; begin another one")
	errClosed = errors.New("the shop is stopping")
)

// errAnswer is the error in a child's answer. The request has changed nothing.
type errAnswer struct{ child.Answer }

func (e errAnswer) Error() string { return e.Answer.Error }

func (h *Host) after(d time.Duration, f func()) (stop func()) {
	if h.After != nil {
		return h.After(d, f)
	}
	t := time.AfterFunc(d, f)
	return func() { t.Stop() }
}

// create begins a game for a player at an address; "" is this machine.
func (h *Host) create(from string, c play.Config, level *level.Level) (*game, error) {
	closing, err := h.reserve(from)
	if err != nil {
		return nil, err
	}
	defer h.ending.Done()
	g, err := h.open(closing, c, level)
	if err != nil {
		h.release(from)
		return nil, err
	}
	g.from = from
	if !h.register(g) {
		g.process.end()
		h.release(from)
		return nil, errClosed
	}
	g.rest()
	go func() { // waits for the child, which may end by itself
		<-g.process.gone
		g.end(g.process.ended().Error())
	}()
	return g, nil
}

// reserve counts a game before its child starts, so that the limits hold. The caller must call ending.Done
// when it has registered the game or has failed to.
func (h *Host) reserve(from string) (closing <-chan struct{}, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	most := cmp.Or(h.Most, Most)
	switch {
	case h.closed:
		return nil, errClosed
	case h.Public && from != "" && h.places[from] >= Each:
		return nil, errEach{Each}
	case h.taken >= most:
		return nil, errFull{most}
	}
	if h.closing == nil {
		h.closing, h.games, h.places = make(chan struct{}), map[string]*game{}, map[string]int{}
	}
	h.taken++
	h.places[from]++
	h.ending.Add(1)
	return h.closing, nil
}

func (h *Host) release(from string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.taken--
	if h.places[from]--; h.places[from] == 0 {
		delete(h.places, from)
	}
}

// register adds a game. It returns false if the host is closed.
func (h *Host) register(g *game) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.games[g.id] = g
	}
	return !h.closed
}

// forget removes a game and reports whether it was registered. If it was, the caller must call ending.Done
// when the game's child has ended.
func (h *Host) forget(g *game) (known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if known = h.games[g.id] == g; known {
		delete(h.games, g.id)
		h.ending.Add(1)
	}
	return known
}

func (h *Host) open(closing <-chan struct{}, c play.Config, level *level.Level) (*game, error) {
	cmd, err := h.Command()
	if err != nil {
		return nil, err
	}
	p, err := start(cmd)
	if err != nil {
		return nil, fmt.Errorf("start the game's process: %w", err)
	}
	opened := make(chan struct{})
	defer close(opened)
	go func() {
		select {
		case <-closing:
			p.kill()
		case <-opened:
		}
	}()
	a, err := p.ask(child.Request{Op: child.Open, Config: &c}, nil, nil)
	switch {
	case err != nil:
		p.end()
		return nil, fmt.Errorf("the game did not begin: %s", err) // no player knows this game yet, so the error is not errDied
	case a.Error != "":
		p.end()
		return nil, errAnswer{a}
	case a.Position == nil:
		p.end()
		return nil, errors.New("the game did not begin: its process has no position")
	}
	return &game{
		host: h, id: rand.Text(), level: level, process: p, pages: map[chan<- event]bool{},
		idle: func() {}, leaving: func() {}, at: *a.Position, over: make(chan struct{}),
	}, nil
}

func (h *Host) find(id string) (*game, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if g := h.games[id]; g != nil {
		return g, nil
	}
	return nil, errNoGame
}

// Close ends all games, including those about to open, and returns when their processes have ended.
// It may be called twice.
func (h *Host) Close() {
	h.mu.Lock()
	if !h.closed && h.closing != nil {
		close(h.closing)
	}
	h.closed = true
	var all []*game
	for _, g := range h.games {
		all = append(all, g)
	}
	h.mu.Unlock()
	for _, g := range all {
		g.end(errClosed.Error())
	}
	h.ending.Wait()
}
