package play

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
)

// wait is how long a buyer's statement waits for a lock in the database. The explorer's own connections do
// not wait for locks.
const wait = time.Minute

// oldRun is the maximum age of a run, one execution of the steps so far. The game repeats an older run before
// its next step, since a run's contexts and leases end after schedule.Forever.
const oldRun = 20 * time.Minute

// A Game is one schedule whose steps a player chooses. Its methods may be called by several
// goroutines, and run one after the other.
type Game struct {
	config   Config
	engine   *engine.Engine
	explorer *explore.Explorer
	ctx      context.Context // context of all runs
	cancel   context.CancelFunc
	now      func() time.Time

	mu     sync.Mutex
	round  *round
	at     Position // the current position
	tokens []string // the steps so far
	closed bool
}

// ErrBadMove means that there is no such choice now. Nothing has changed.
var ErrBadMove = errors.New("no such move")

// ErrClosed means that the game has ended.
var ErrClosed = errors.New("the game has ended; begin another one")

// Open starts the embedded servers and begins a game. It fills in the configuration's defaults and checks it.
// The caller must call Close.
func Open(ctx context.Context, c Config) (_ *Game, err error) {
	c = c.Filled()
	if err := c.Check(); err != nil {
		return nil, err
	}
	g := &Game{config: c, now: time.Now}
	if g.engine, err = engine.Open(ctx, engine.Config{Name: engine.Embedded, Wait: wait, Still: true}); err != nil {
		return nil, err
	}
	g.ctx, g.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if err := g.open(ctx); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// open opens the explorer and begins the first round, one run of the explorer.
func (g *Game) open(ctx context.Context) (err error) {
	entry, _ := lockstrategy.ByName(g.config.Strategy)
	if why := entry.Missing(onengine.Deps(g.engine)); why != "" {
		why, _, _ = strings.Cut(why, ";") // removes the advice on flags of `shop serve`
		return fmt.Errorf("%w: games are played on SQLite and the Redis in this program, and %s needs more: %s", ErrMissing, entry.Name, why)
	}
	g.explorer, err = explore.New(ctx, explore.Config{
		OfStrategy: explore.OfStrategy{Engine: g.engine, Strategy: entry, Stock: g.config.Stock, Units: explore.Units{g.config.Units}, Product: sold},
		Buyers:     g.config.Buyers, Events: g.config.Events, Shared: g.config.Shared, Bound: -1,
	})
	if err != nil {
		return err
	}
	return g.begin(nil)
}

// Position returns the current position.
func (g *Game) Position() Position {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.at
}

// Move executes one of the choices. If there is no such choice, it returns ErrBadMove in one line.
func (g *Game) Move(token string) (Position, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return g.at, ErrClosed
	}
	if err := g.at.allows(token); err != nil {
		return g.at, err
	}
	tokens := append(g.tokens[:len(g.tokens):len(g.tokens)], token)
	if g.round == nil || g.now().Sub(g.round.begun) > oldRun {
		return g.at, g.begin(tokens)
	}
	g.round.moves <- token
	return g.at, g.arrive(tokens)
}

// Undo takes the last step back: it starts again and repeats all steps before the last.
func (g *Game) Undo() (Position, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
		return g.at, ErrClosed
	case len(g.tokens) == 0:
		return g.at, fmt.Errorf("%w: there is no step to take back", ErrBadMove)
	}
	return g.at, g.begin(g.tokens[:len(g.tokens)-1])
}

// Restart begins again from the first command.
func (g *Game) Restart() (Position, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return g.at, ErrClosed
	}
	return g.at, g.begin(nil)
}

// Close ends the game and its servers. It may be called twice.
func (g *Game) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	g.closed = true
	g.leave()
	g.cancel()
	var err error
	if g.explorer != nil {
		err = g.explorer.Close()
	}
	return errors.Join(err, g.engine.Close())
}

// allows returns an error if the position does not have the choice.
func (p Position) allows(token string) error {
	if p.End != nil {
		return fmt.Errorf("%w: the game is over; undo or restart", ErrBadMove)
	}
	var all []string
	for _, c := range p.Choices {
		if c.Token == token {
			return nil
		}
		all = append(all, c.Token)
	}
	return fmt.Errorf("%w: %.40q; there are %s", ErrBadMove, token, strings.Join(all, ", "))
}
