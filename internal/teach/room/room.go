// Package room lets a room of people buy with their phones: one button each, one sale for
// all, and a panel on the projector that shows who got what.
//
//	phone -> POST /room/buy -> (the door) -> the shop's own counter -> strategy
//	  ^                                                                  |
//	  +------ what became of it, in words <------ Room <-----------------+ -> panel
//
// Whoever presses before the door opens waits at it, and all who wait go in at the same
// moment: people press within a second or two of each other, and a purchase takes
// milliseconds, so without a door hardly two of them would meet.
//
// It is not a judge: the books are read by the audit. What a phone is told of the others
// is what this room's buyers were answered. Everything here is in memory, bounded, and
// gone with the process.
package room

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// MaxCountdown is the longest countdown of the door, in seconds.
const MaxCountdown = 5

// What a room refuses. Nothing was tried then.
var (
	errShut     = errors.New("the sale is not open")
	errPressing = errors.New("your last press is still under way; wait for its answer") // a phone has one at a time
	errFull     = errors.New("as many press now as the room holds; press again in a moment")
	errBad      = errors.New("bad request")
)

// A Strategy is one that the leader may choose.
type Strategy struct {
	Name string
	// Tells: what a receipt says is left tells which unit was sold.
	Tells bool
}

// Config is what a room stands on.
type Config struct {
	Sell       func(ctx context.Context, strategy string, o purchase.Order) (purchase.Receipt, error)
	Known      func(ctx context.Context, productName string) error              // why there is no such product, or nil
	Restock    func(ctx context.Context, productName string, units int64) error // calls Restocked
	Strategies []Strategy                                                       // those that the shop can run
}

// A Room brings the leader, the door and the buyers of one sale together: it alone knows which
// press is under way. Its methods may be called by any number of goroutines.
type Room struct {
	config  Config
	leading sync.Mutex // one leader's change at a time; a restock may take long

	mu     sync.Mutex
	sale   *sale // nil until the leader has chosen one
	door   *door // nil while it is shut
	phones phones
}

// New returns a room without a sale.
func New(c Config) *Room {
	return &Room{config: c, phones: phones{byID: map[string]*buyer{}}}
}

// Put restocks a product that there is, and has the room buy it under a strategy. The door is
// shut then.
func (r *Room) Put(ctx context.Context, productName, strategy string, units int64) error {
	i := slices.IndexFunc(r.config.Strategies, func(s Strategy) bool { return s.Name == strategy })
	switch bad := product.CheckForSale(productName); {
	case bad != nil:
		return fmt.Errorf("%w: %w", errBad, bad)
	case i < 0:
		return fmt.Errorf("%w: strategy %q is not one that this shop can run; GET /strategies lists them", errBad, strategy)
	case units < 1 || units > product.MaxStock:
		return fmt.Errorf("%w: stock is %d; 1 to %d are allowed", errBad, units, product.MaxStock)
	}
	r.leading.Lock()
	defer r.leading.Unlock()
	if err := r.config.Known(ctx, productName); err != nil {
		return err
	}
	r.Shut()
	if err := r.config.Restock(ctx, productName, units); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begin(productName, r.config.Strategies[i], units)
	return nil
}

// Restocked begins the sale anew where it is of this product, whoever restocked it: what
// the room remembers is no more in the books.
func (r *Room) Restocked(productName string, units int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sale != nil && r.sale.product == productName {
		r.begin(productName, r.sale.strategy, units)
	}
}

// begin starts a sale, and clears what the phones got in the one before.
func (r *Room) begin(productName string, s Strategy, units int64) {
	r.sale = newSale(productName, s, units)
	r.phones.begin()
}

// Open lets buyers in after a countdown, at once where it is 0. A door that is open, or
// about to be, stays as it is.
func (r *Room) Open(seconds int) error {
	if seconds < 0 || seconds > MaxCountdown {
		return fmt.Errorf("%w: in_seconds is %d; 0 to %d are allowed", errBad, seconds, MaxCountdown)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sale == nil {
		return fmt.Errorf("%w: nothing is on sale; choose a strategy, a product and a stock first", errShut)
	}
	if r.door == nil {
		r.door = newDoor(time.Duration(seconds) * time.Second)
	}
	return nil
}

// Shut sends those away who wait at the door. Who is in stays in.
func (r *Room) Shut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.door != nil {
		r.door.shutNow()
		r.door = nil
	}
}

// Join notes a phone and the name of who holds it, or another name for it.
func (r *Room) Join(p Phone) error {
	if err := p.check(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err := r.phones.join(p)
	return err
}

// Press buys one unit for whoever holds the phone. The key is that of this press: the same
// press again gets the same answer, and waits for it while the first is under way. An error says
// in words what became of it, and wraps errBad, errShut, errPressing, errFull, or what the
// strategy returned.
func (r *Room) Press(ctx context.Context, p Phone, key string) (says string, _ error) {
	if err := p.check(); err != nil {
		return "", err
	}
	order := purchase.Order{Purchaser: p.Name, Amount: 1, IdempotencyKey: key}
	for {
		b, d, first, err := r.enter(p, &order)
		switch {
		case err != nil:
			return "", err
		case first == nil:
			return r.buy(ctx, b, d, order)
		}
		select {
		case <-first.done:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		if !first.hungUp {
			return first.says, first.err
		}
	}
}

// buy waits at the door, buys, and ends the press.
func (r *Room) buy(ctx context.Context, b *buyer, d *door, order purchase.Order) (says string, err error) {
	ended := b.press
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		ended.says, ended.err, ended.hungUp = says, err, err != nil && ctx.Err() != nil
		b.press = nil
		close(ended.done)
	}()
	if err := d.wait(ctx); err != nil {
		return "", err
	}
	s, err := r.goIn(order)
	if err != nil {
		return "", err
	}
	receipt, err := r.config.Sell(ctx, s.strategy.Name, order)
	return r.note(ctx, b, s, receipt, err)
}

// enter notes that the phone's press is under way, or finds it first.
func (r *Room) enter(p Phone, o *purchase.Order) (b *buyer, d *door, first *press, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b, err = r.phones.join(p); err != nil {
		return nil, nil, nil, err
	}
	switch {
	case b.press != nil && b.press.key == o.IdempotencyKey:
		return b, nil, b.press, nil
	case b.press != nil:
		return nil, nil, nil, errPressing
	case r.sale == nil:
		return nil, nil, nil, fmt.Errorf("%w: the leader has put nothing on sale yet", errShut)
	case r.door == nil:
		return nil, nil, nil, fmt.Errorf("%w: wait for the leader to open it", errShut)
	}
	o.Product = r.sale.product
	if err := o.Check(); err != nil {
		return nil, nil, nil, fmt.Errorf("%w: %w", errBad, err)
	}
	b.press, b.pressed = &press{key: o.IdempotencyKey, done: make(chan struct{})}, true
	return b, r.door, nil, nil
}

// goIn is the sale that the buyer finds behind the door.
func (r *Room) goIn(o purchase.Order) (*sale, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sale.product != o.Product {
		return nil, fmt.Errorf("%w: something else is on sale now", errShut)
	}
	return r.sale, nil
}

// note remembers how a press ended, unless its sale is over.
func (r *Room) note(ctx context.Context, b *buyer, s *sale, receipt purchase.Receipt, err error) (says string, _ error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if errors.Is(err, purchase.ErrKeyReused) { // by another order: nothing was tried
		return "", err
	}
	now := s.count(b.result, receipt, err)
	now.hungUp = err != nil && ctx.Err() != nil
	says = s.words(now)
	if s == r.sale {
		b.result = now
	}
	if err != nil {
		return "", &refused{says: says, cause: err}
	}
	return says, nil
}

// seenBy is what a phone sees.
func (r *Room) seenBy(phone string) phoneAnswer {
	r.mu.Lock()
	defer r.mu.Unlock()
	answer := phoneAnswer{Sale: r.sale.view(r.door)}
	if b := r.phones.byID[phone]; b != nil {
		b.heard = time.Now()
		you := r.sale.viewOf(b)
		answer.You = &you
		if r.sale != nil {
			answer.Says = r.sale.words(b.result)
		}
	}
	return answer
}

// everybody is what the panel sees.
func (r *Room) everybody() panelAnswer {
	r.mu.Lock()
	defer r.mu.Unlock()
	answer := panelAnswer{Sale: r.sale.view(r.door), Buyers: []buyerJSON{}, Outcomes: map[purchase.Outcome]int{}}
	for _, b := range r.phones.listed() {
		answer.Buyers = append(answer.Buyers, r.sale.viewOf(b))
	}
	for _, o := range purchase.Outcomes() {
		answer.Outcomes[o] = 0
		if r.sale != nil {
			answer.Outcomes[o] = r.sale.outcomes[o]
		}
	}
	return answer
}
