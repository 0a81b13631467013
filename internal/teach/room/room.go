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
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// Bounds of what a room keeps.
const (
	MaxBuyers    = 300 // phones, each with one press under way; one more takes the place of another, see oldest
	MaxFrom      = 150 // phones of one remote address: a school's network may have one for all of a class
	MaxCountdown = 5   // seconds until the door opens
)

// gone is how long a phone may be silent before a restock forgets it. It asks every second.
const gone = 15 * time.Second

// errShut: there is nothing to buy now. Nothing was tried.
var errShut = errors.New("the sale is not open")

// errPressing: a phone has one press under way at a time. Of the other nothing was tried.
var errPressing = errors.New("your last press is still under way; wait for its answer")

// errFull: each phone that the room holds has a press under way.
var errFull = errors.New("as many press now as the room holds; press again in a moment")

// errBad: the request asks for something impossible.
var errBad = errors.New("bad request")

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

// A Room is one sale and those who came for it. Its methods may be called by any number of
// goroutines.
type Room struct {
	config  Config
	leading sync.Mutex // one leader's change at a time; a restock may take long

	mu     sync.Mutex
	sale   *sale             // nil until the leader has chosen one
	door   *door             // nil while it is shut
	buyers map[string]*buyer // by phone
	joined int
}

// A sale lasts from one restock to the next.
type sale struct {
	product  string
	strategy Strategy
	stock    int64
	sold     int64          // units, to phones
	times    map[int64]int  // how often a unit was sold, by its number
	beyond   map[int64]bool // by the record's id, of those in sold: the same press may be answered twice
	outcomes map[purchase.Outcome]int
}

// New returns a room without a sale.
func New(c Config) *Room {
	return &Room{config: c, buyers: map[string]*buyer{}}
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

// begin clears what the phones got, and forgets those that are gone.
func (r *Room) begin(productName string, s Strategy, units int64) {
	r.sale = &sale{
		product: productName, strategy: s, stock: units,
		times: map[int64]int{}, beyond: map[int64]bool{}, outcomes: map[purchase.Outcome]int{},
	}
	for phone, b := range r.buyers {
		if time.Since(b.heard) > gone && b.press == nil {
			delete(r.buyers, phone)
			continue
		}
		b.result = result{}
	}
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
	_, err := r.join(p)
	return err
}

func (r *Room) join(p Phone) (*buyer, error) {
	b := r.buyers[p.ID]
	if b == nil {
		if err := r.makeRoom(p.From); err != nil {
			return nil, err
		}
		r.joined++
		b = &buyer{number: r.joined, from: p.From}
		r.buyers[p.ID] = b
	}
	if b.name != p.Name {
		b.name, b.shown = p.Name, r.apart(p.Name)
	}
	b.heard = time.Now()
	return b, nil
}

// apart is a name by which the room can tell its bearer from everybody who came before:
// "Ann (2)". The records have what was typed.
func (r *Room) apart(name string) string {
	taken := map[string]bool{}
	for _, b := range r.buyers {
		taken[b.shown] = true
	}
	shown := name
	for n := 2; taken[shown]; n++ {
		shown = fmt.Sprintf("%s (%d)", name, n)
	}
	return shown
}

// makeRoom forgets a phone where there are as many as there may be: one of the same address,
// where that has too many itself, so that it pushes out nobody else's.
func (r *Room) makeRoom(from string) error {
	same := 0
	for _, b := range r.buyers {
		if b.from == from {
			same++
		}
	}
	full := from != "" && same >= MaxFrom
	if !full && len(r.buyers) < MaxBuyers {
		return nil
	}
	id, found := r.oldest(func(b *buyer) bool { return b.press == nil && (!full || b.from == from) })
	if !found {
		return errFull
	}
	delete(r.buyers, id)
	return nil
}

// oldest is the phone not heard of for longest, of those that never pressed if there are any:
// ids are soon invented, and who presses is somebody.
func (r *Room) oldest(among func(b *buyer) bool) (id string, found bool) {
	var oldest *buyer
	for phone, b := range r.buyers {
		if among(b) && (oldest == nil || b.pressed == oldest.pressed && b.heard.Before(oldest.heard) || !b.pressed && oldest.pressed) {
			id, oldest = phone, b
		}
	}
	return id, oldest != nil
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
	if b, err = r.join(p); err != nil {
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
	if errors.Is(err, purchase.ErrKeyReused) { // of another order: nothing was tried
		return "", err
	}
	now := result{outcome: purchase.OutcomeOf(err), units: b.units, presses: b.presses, hungUp: err != nil && ctx.Err() != nil}
	beyond, again := s.beyond[receipt.ID]
	again = again && err == nil
	if !again {
		now.presses++
		s.outcomes[now.outcome]++
	}
	if err == nil {
		now.unit = s.stock - receipt.Left
		if !s.strategy.Tells {
			now.unit = 0
		}
		if !again {
			now.units++
			s.sold++
			s.times[now.unit]++
			beyond = s.sold > s.stock // at that moment: later presses change nothing of it
			s.beyond[receipt.ID] = beyond
		}
		now.beyond = beyond
	}
	says = s.words(now)
	if s == r.sale {
		b.result = now
	}
	if err != nil {
		return "", &refused{says: says, cause: err}
	}
	return says, nil
}

// listed are the buyers in the order in which they came.
func (r *Room) listed() []*buyer {
	all := make([]*buyer, 0, len(r.buyers))
	for _, b := range r.buyers {
		all = append(all, b)
	}
	slices.SortFunc(all, func(a, b *buyer) int { return cmp.Compare(a.number, b.number) })
	return all
}
