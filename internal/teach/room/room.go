// Package room lets a group of people buy with their phones. Each phone has one button, all phones share one
// sale, and a panel on the projector shows each buyer's answer.
//
//	phone -> POST /room/buy -> (the door) -> the shop's own counter -> strategy
//	  ^                                                                  |
//	  +------ the result, in words <------------- Room <-----------------+ -> panel
//
// If buyers press the button before the leader of the group opens the door, they wait, and all go in at the
// same moment. People press within a second or two, but a purchase takes milliseconds: without the door,
// hardly any purchases would overlap.
//
// The room does not judge whether stock and records are right; the shop's audit does. All data is in memory,
// limited in size, and lost when the process ends.
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

// MaxCountdown is the maximum countdown before the door opens, in seconds.
const MaxCountdown = 5

// Errors of a room. The refused request had no effect.
var (
	errShut     = errors.New("the sale is not open")
	errPressing = errors.New("your last press is still under way; wait for its answer") // a phone has only one press at a time
	errFull     = errors.New("as many press now as the room holds; press again in a moment")
	errInvalid  = errors.New("bad request")
)

// A Strategy is a lock strategy that the leader may choose.
type Strategy struct {
	Name string
	// ReceiptShowsUnit: the remaining stock in a receipt tells which unit was sold.
	ReceiptShowsUnit bool
}

// Config contains the functions that a room needs.
type Config struct {
	Sell         func(ctx context.Context, strategy string, o purchase.Order) (purchase.Receipt, error)
	CheckProduct func(ctx context.Context, productName string) error              // returns an error if the product does not exist
	Restock      func(ctx context.Context, productName string, units int64) error // must call Restocked
	Strategies   []Strategy                                                       // the strategies that the shop can run
}

// A Room connects the leader, the door and the buyers of one sale. It knows which presses are under
// way. Its methods may be called by any number of goroutines.
type Room struct {
	config   Config
	leaderMu sync.Mutex // held during a change by the leader; mu is not, since a restock may take long

	mu     sync.Mutex
	sale   *sale // nil until the leader has started a sale
	door   *door // nil while it is shut
	phones phones
}

// New returns a room without a sale.
func New(c Config) *Room {
	return &Room{config: c, phones: phones{byID: map[string]*buyer{}}}
}

// Put restocks an existing product and starts its sale with a lock strategy. The door is shut at first.
func (r *Room) Put(ctx context.Context, productName, strategy string, units int64) error {
	i := slices.IndexFunc(r.config.Strategies, func(s Strategy) bool { return s.Name == strategy })
	switch bad := product.CheckForSale(productName); {
	case bad != nil:
		return fmt.Errorf("%w: %w", errInvalid, bad)
	case i < 0:
		return fmt.Errorf("%w: strategy %q is not one that this shop can run; GET /strategies lists them", errInvalid, strategy)
	case units < 1 || units > product.MaxStock:
		return fmt.Errorf("%w: stock must be between 1 and %d (got %d)", errInvalid, product.MaxStock, units)
	}
	r.leaderMu.Lock()
	defer r.leaderMu.Unlock()
	if err := r.config.CheckProduct(ctx, productName); err != nil {
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

// Restocked restarts the current sale if it sells this product. The restock has deleted the records of the
// sale's earlier results.
func (r *Room) Restocked(productName string, units int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sale != nil && r.sale.product == productName {
		r.begin(productName, r.sale.strategy, units)
	}
}

// begin starts a sale and clears the phones' earlier results.
func (r *Room) begin(productName string, s Strategy, units int64) {
	r.sale = newSale(productName, s, units)
	r.phones.begin()
}

// Open lets buyers in after a countdown in seconds, or at once if seconds is 0. It does not change a
// door that is open or about to open.
func (r *Room) Open(seconds int) error {
	if seconds < 0 || seconds > MaxCountdown {
		return fmt.Errorf("%w: in_seconds must be between 0 and %d (got %d)", errInvalid, MaxCountdown, seconds)
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

// Shut sends away the buyers that wait at the door. Buyers that have passed it go on.
func (r *Room) Shut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.door != nil {
		r.door.shutNow()
		r.door = nil
	}
}

// Join adds a phone and its holder's name, or changes the name.
func (r *Room) Join(p Phone) error {
	if err := p.check(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err := r.phones.join(p)
	return err
}

// Press buys one unit for the phone. The parameter `key` identifies the press: a repeated press gets the
// same answer, and waits for it if necessary. The error describes the result in words and wraps
// errInvalid, errShut, errPressing, errFull, or the strategy's error.
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
	s, err := r.saleFor(order)
	if err != nil {
		return "", err
	}
	receipt, err := r.config.Sell(ctx, s.strategy.Name, order)
	return r.note(ctx, b, s, receipt, err)
}

// enter starts a press, or returns the press with this key that is already under way.
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
		return nil, nil, nil, fmt.Errorf("%w: %w", errInvalid, err)
	}
	b.press, b.pressed = &press{key: o.IdempotencyKey, done: make(chan struct{})}, true
	return b, r.door, nil, nil
}

// saleFor returns the current sale if it sells the ordered product.
func (r *Room) saleFor(o purchase.Order) (*sale, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sale.product != o.Product {
		return nil, fmt.Errorf("%w: something else is on sale now", errShut)
	}
	return r.sale, nil
}

// note records the result of a press, unless the press belongs to an earlier sale.
func (r *Room) note(ctx context.Context, b *buyer, s *sale, receipt purchase.Receipt, err error) (says string, _ error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if errors.Is(err, purchase.ErrKeyReused) { // another order used the key, so this press bought nothing
		return "", err
	}
	res := s.count(b.result, receipt, err)
	res.hungUp = err != nil && ctx.Err() != nil
	says = s.words(res)
	if s == r.sale {
		b.result = res
	}
	if err != nil {
		return "", &refused{says: says, cause: err}
	}
	return says, nil
}

func (r *Room) seenBy(phone string) phoneAnswer {
	r.mu.Lock()
	defer r.mu.Unlock()
	answer := phoneAnswer{Sale: r.sale.view(r.door)}
	if b := r.phones.byID[phone]; b != nil {
		b.lastSeen = time.Now()
		you := r.sale.viewOf(b)
		answer.You = &you
		if r.sale != nil {
			answer.Says = r.sale.words(b.result)
		}
	}
	return answer
}

func (r *Room) panelView() panelAnswer {
	r.mu.Lock()
	defer r.mu.Unlock()
	answer := panelAnswer{Sale: r.sale.view(r.door), Buyers: []buyerJSON{}, Outcomes: map[purchase.Outcome]int{}}
	for _, b := range r.phones.inOrder() {
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
