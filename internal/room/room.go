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
	MaxBuyers    = 300       // phones; one more takes the place of the one not heard of for longest
	MaxWaiting   = MaxBuyers // presses that wait at the door
	MaxCountdown = 5         // seconds until the door opens
)

// gone is how long a phone may be silent before a restock forgets it. It asks every second.
const gone = 15 * time.Second

// errShut: there is nothing to buy now. Nothing was tried.
var errShut = errors.New("the sale is not open")

// errBad: the request asks for something impossible.
var errBad = errors.New("bad request")

// A Strategy is one that the leader may choose.
type Strategy struct {
	Name string
	// LeftLags: what a receipt says is left may leave out sales that are under way, so no
	// number of a unit follows from it.
	LeftLags bool
}

// Config is what a room stands on.
type Config struct {
	Sell       func(ctx context.Context, strategy string, o purchase.Order) (purchase.Receipt, error)
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
	counted  map[int64]bool // records that are in sold: the same press may be answered twice
	outcomes map[purchase.Outcome]int
}

// New returns a room without a sale.
func New(c Config) *Room {
	return &Room{config: c, buyers: map[string]*buyer{}}
}

// Put restocks a product and has the room buy it under a strategy. The door is shut then.
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
		times: map[int64]int{}, counted: map[int64]bool{}, outcomes: map[purchase.Outcome]int{},
	}
	for phone, b := range r.buyers {
		if time.Since(b.heard) > gone {
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
func (r *Room) Join(phone, name string) error {
	if err := checkPhone(phone, name); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.join(phone, name)
	return nil
}

func (r *Room) join(phone, name string) *buyer {
	b := r.buyers[phone]
	if b == nil {
		if len(r.buyers) >= MaxBuyers {
			r.forgetOne()
		}
		r.joined++
		b = &buyer{number: r.joined}
		r.buyers[phone] = b
	}
	b.name, b.heard = name, time.Now()
	return b
}

// forgetOne makes room by the phone that was not heard of for longest.
func (r *Room) forgetOne() {
	var longest string
	for phone, b := range r.buyers {
		if o := r.buyers[longest]; o == nil || b.heard.Before(o.heard) {
			longest = phone
		}
	}
	delete(r.buyers, longest)
}

// Press buys one unit for whoever holds the phone. The key is that of this press: the same
// press again gets the same answer. An error says in words what became of it, and wraps
// errBad, errShut, or what the strategy returned.
func (r *Room) Press(ctx context.Context, phone, name, key string) (says string, _ error) {
	if err := checkPhone(phone, name); err != nil {
		return "", err
	}
	order := purchase.Order{Purchaser: name, Amount: 1, IdempotencyKey: key}
	b, d, err := r.enter(phone, &order)
	if err != nil {
		return "", err
	}
	err = d.wait(ctx)
	s, err := r.goIn(b, d, order, err)
	if err != nil {
		return "", err
	}
	receipt, err := r.config.Sell(ctx, s.strategy.Name, order)
	return r.note(ctx, b, s, receipt, err)
}

// enter notes that the phone's press is under way.
func (r *Room) enter(phone string, o *purchase.Order) (*buyer, *door, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.join(phone, o.Purchaser)
	switch {
	case r.sale == nil:
		return nil, nil, fmt.Errorf("%w: the leader has put nothing on sale yet", errShut)
	case r.door == nil:
		return nil, nil, fmt.Errorf("%w: wait for the leader to open it", errShut)
	}
	o.Product = r.sale.product
	if err := o.Check(); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errBad, err)
	}
	if r.door.waiting >= MaxWaiting {
		return nil, nil, fmt.Errorf("%w: %d wait at the door, as many as it holds; press again when it is open", errShut, MaxWaiting)
	}
	r.door.waiting++
	b.underWay++
	return b, r.door, nil
}

// goIn returns the sale that the buyer finds behind the door, unless waiting ended otherwise.
func (r *Room) goIn(b *buyer, d *door, o purchase.Order, waited error) (*sale, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d.waiting--
	if waited == nil && r.sale.product != o.Product {
		waited = fmt.Errorf("%w: something else is on sale now", errShut)
	}
	if waited != nil {
		b.underWay--
		return nil, waited
	}
	return r.sale, nil
}

// note remembers how a press ended, unless its sale is over.
func (r *Room) note(ctx context.Context, b *buyer, s *sale, receipt purchase.Receipt, err error) (says string, _ error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b.underWay--
	if errors.Is(err, purchase.ErrKeyReused) { // of another order: nothing was tried
		return "", err
	}
	now := result{outcome: purchase.OutcomeOf(err), units: b.units, presses: b.presses, hungUp: err != nil && ctx.Err() != nil}
	again := err == nil && s.counted[receipt.ID]
	if !again {
		now.presses++
		s.outcomes[now.outcome]++
	}
	if err == nil {
		now.unit = s.stock - receipt.Left
		if s.strategy.LeftLags {
			now.unit = 0
		}
		if !again {
			s.counted[receipt.ID] = true
			now.units++
			s.sold++
			s.times[now.unit]++
		}
		now.beyond = s.sold > s.stock
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
