package main

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/rlock"
)

// leased is a lock with a TTL whose section ends with the lease. Its fields select bugs.
type leased struct {
	lockstrategy.Deps
	name       string
	checkToken bool // false: it releases the lock of any holder
	oneForAll  bool // all products share one lock
	leak       bool // the release stops when the buyer hangs up, but the renewal does not
	keep       bool // no release after a failed section or a sold-out product
}

func (s *leased) Buy(ctx context.Context, o purchase.Order) (_ purchase.Receipt, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.Settings.Wait, purchase.ErrBusy)
	defer cancel()
	key, token := "planted:"+s.name+":"+o.Product, rand.Text()
	if s.oneForAll { // the bug
		key = "planted:" + s.name
	}
	for {
		got, err := s.Redis.SetNX(context.WithoutCancel(ctx), key, token, s.Settings.LeaseTTL).Result()
		if err != nil {
			return purchase.Receipt{}, deps.Failed(deps.Redis, err)
		}
		if got {
			break
		}
		select {
		case <-time.After(s.Settings.Poll):
		case <-ctx.Done():
			return purchase.Receipt{}, context.Cause(ctx)
		}
	}
	event := lockstrategy.Event{Kind: lockstrategy.Acquired, At: time.Now(), Strategy: s.name, Product: o.Product, Purchaser: o.Purchaser, Token: token}
	s.Observe(ctx, event)
	section, end := context.WithTimeoutCause(ctx, s.Settings.LeaseTTL*9/10, purchase.ErrLockLost)
	defer end()
	lost := event
	defer context.AfterFunc(section, func() {
		lost.Kind, lost.At = lockstrategy.Lost, time.Now()
		s.Observe(ctx, lost)
	})()
	released := make(chan struct{})
	if s.leak {
		go s.renew(key, token, released)
	}
	defer func() {
		event.Kind, event.At = lockstrategy.Released, time.Now()
		s.Observe(ctx, event)
		if s.keep && err != nil {
			return // the bug: the early return
		}
		if s.leak && ctx.Err() != nil {
			return // the bug: a buyer that hangs up leaves the lock and its renewal behind
		}
		close(released)
		if !s.checkToken { // the bug
			s.Redis.Del(context.WithoutCancel(ctx), key)
			return
		}
		free := redis.NewScript(`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`)
		free.Run(context.WithoutCancel(ctx), s.Redis, []string{key}, token)
	}()
	return purchase.Section{DB: s.DB, Strategy: s.name, Now: time.Now}.Sell(section, o, 0)
}

func (s *leased) renew(key, token string, released <-chan struct{}) {
	for {
		select {
		case <-released:
			return
		case <-time.After(s.Settings.LeaseTTL / 3):
			if s.Redis.Get(context.Background(), key).Val() == token {
				s.Redis.PExpire(context.Background(), key, s.Settings.LeaseTTL)
			}
		}
	}
}

// roomy is an in-memory lock that admits several holders, around a statement that needs no lock.
type roomy struct {
	lockstrategy.Deps
	purchase.Strategy
	room chan struct{}
}

func newRoomy(d lockstrategy.Deps, room int) *roomy {
	return &roomy{d, lockstrategy.NewConditional(d), make(chan struct{}, room)}
}

func (s *roomy) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	select {
	case s.room <- struct{}{}:
	case <-time.After(s.Settings.Wait):
		return purchase.Receipt{}, purchase.ErrBusy
	}
	event := lockstrategy.Event{Kind: lockstrategy.Acquired, At: time.Now(), Product: o.Product, Purchaser: o.Purchaser}
	s.Observe(ctx, event)
	defer func() {
		event.Kind, event.At = lockstrategy.Released, time.Now()
		s.Observe(ctx, event)
		<-s.room
	}()
	return s.Strategy.Buy(ctx, o)
}

// neverRenewed returns dependencies for a watchdog whose timer never fires.
func neverRenewed(d lockstrategy.Deps) lockstrategy.Deps {
	d.Renewal = func(context.Context, time.Duration, func(context.Context)) rlock.Timer {
		return time.AfterFunc(time.Hour, func() {})
	}
	return d
}

// notifying is an in-memory lock whose release wakes a waiter only the first few times of each
// hundred. It stalls while most buyers of a burst still have most of their wait, even slow ones.
type notifying struct {
	lockstrategy.Deps
	mu       sync.Mutex
	taken    bool
	releases int
	freed    chan struct{}
}

func (s *notifying) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.Settings.Wait, purchase.ErrBusy)
	defer cancel()
	for !s.take() {
		select {
		case <-s.freed:
		case <-ctx.Done():
			return purchase.Receipt{}, context.Cause(ctx)
		}
	}
	defer s.free()
	return purchase.Section{DB: s.DB, Strategy: "missed-wake-up", Now: time.Now}.Sell(ctx, o, 0)
}

func (s *notifying) take() (took bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	took, s.taken = !s.taken, true
	return took
}

func (s *notifying) free() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken = false
	if s.releases++; s.releases%100 > 5 { // the bug
		return
	}
	select {
	case s.freed <- struct{}{}:
	default:
	}
}

// versioned is an optimistic strategy. It may ignore whether its update has changed a row, or read
// only once for all rounds.
type versioned struct {
	lockstrategy.Deps
	name      string
	checkRows bool
	stale     bool
	once      bool          // a lost round is the last one
	rounds    chan struct{} // maximum number of concurrent rounds
}

func newVersioned(d lockstrategy.Deps, name string, checkRows, stale bool) *versioned {
	return &versioned{Deps: d, name: name, checkRows: checkRows, stale: stale, rounds: make(chan struct{}, 4)}
}

func (s *versioned) Buy(ctx context.Context, o purchase.Order) (receipt purchase.Receipt, _ error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.Settings.Wait, purchase.ErrBusy)
	defer cancel()
	var p product.Product
	for first := true; ctx.Err() == nil; first = false {
		if first || !s.stale { // the bug: after a lost round it tries again with the old read
			var err error
			if p, err = product.ByName(s.DB.WithContext(ctx), o.Product); err != nil {
				return purchase.Receipt{}, purchase.DatabaseError(ctx, "read the stock", err)
			}
		}
		if err := purchase.Check(p, o); err != nil {
			return purchase.Receipt{}, err
		}
		s.rounds <- struct{}{}
		stale := errors.New("somebody was faster")
		err := purchase.InTx(ctx, s.DB, func(tx *gorm.DB) error {
			wrote, err := product.SetAmountAt(tx, p.ID, p.Amount-o.Amount, p.Version)
			if err != nil {
				return purchase.DatabaseError(ctx, "write the stock", err)
			}
			if !wrote && s.checkRows {
				return stale
			}
			receipt = purchase.Receipt{Product: o.Product, Purchaser: o.Purchaser, Amount: o.Amount, Left: p.Amount - o.Amount, Strategy: s.name}
			return purchase.Insert(ctx, tx, o.IdempotencyKey, time.Now(), &receipt)
		})
		<-s.rounds
		if !errors.Is(err, stale) {
			return receipt, err
		}
		if s.once { // the bug
			return purchase.Receipt{}, purchase.ErrBusy
		}
	}
	return purchase.Receipt{}, context.Cause(ctx)
}

// quorate is a key on several nodes. The holder has a quorum of them.
type quorate struct {
	lockstrategy.Deps
	name   string
	quorum int
	line   chan struct{} // one buyer of a process tries at a time
}

func newQuorate(d lockstrategy.Deps, name string, quorum int) *quorate {
	return &quorate{d, name, quorum, make(chan struct{}, 1)}
}

func (s *quorate) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.Settings.Wait, purchase.ErrBusy)
	defer cancel()
	key, token := "planted:"+s.name+":"+o.Product, rand.Text()
	until, err := s.obtain(ctx, key, token)
	if err != nil {
		return purchase.Receipt{}, err
	}
	event := lockstrategy.Event{Kind: lockstrategy.Acquired, At: time.Now(), Strategy: s.name, Product: o.Product, Purchaser: o.Purchaser, Token: token}
	s.Observe(ctx, event)
	section, end := context.WithDeadlineCause(ctx, until, purchase.ErrLockLost)
	defer end()
	defer func() {
		event.Kind, event.At = lockstrategy.Released, time.Now()
		s.Observe(ctx, event)
		s.free(key, token)
	}()
	return purchase.Section{DB: s.DB, Strategy: s.name, Now: time.Now}.Sell(section, o, 0)
}

// obtain asks all nodes at once and repeats that until enough of them agree.
func (s *quorate) obtain(ctx context.Context, key, token string) (until time.Time, _ error) {
	select {
	case s.line <- struct{}{}:
		defer func() { <-s.line }()
	case <-ctx.Done():
		return time.Time{}, context.Cause(ctx)
	}
	for ctx.Err() == nil {
		until := time.Now().Add(s.Settings.LeaseTTL * 9 / 10)
		got := s.ask(func(ctx context.Context, node redis.UniversalClient) bool {
			return node.SetNX(ctx, key, token, s.Settings.LeaseTTL).Val()
		})
		if got >= s.quorum {
			return until, nil
		}
		s.free(key, token)
		time.Sleep(time.Duration(1+mathrand.IntN(10)) * time.Millisecond) // a random pause, so that votes are not split again
	}
	return time.Time{}, context.Cause(ctx)
}

func (s *quorate) free(key, token string) {
	free := redis.NewScript(`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`)
	s.ask(func(ctx context.Context, node redis.UniversalClient) bool {
		return free.Run(ctx, node, []string{key}, token).Err() == nil
	})
}

// ask counts the nodes that agreed.
func (s *quorate) ask(question func(context.Context, redis.UniversalClient) bool) int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second) // a buyer that hangs up must leave no key behind
	defer cancel()
	answers := make(chan bool, len(s.Redlock))
	for _, node := range s.Redlock {
		go func() { answers <- question(ctx, node) }()
	}
	yes := 0
	for range s.Redlock {
		if <-answers {
			yes++
		}
	}
	return yes
}

// answering sells by a guarded statement. It may answer its buyer before the COMMIT.
type answering struct {
	lockstrategy.Deps
	name  string
	early bool
	mixed bool // it takes the units from every product with the same prefix
	byOne bool // each order takes one unit from the stock, whatever its size
}

func (s *answering) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	type answer struct {
		receipt purchase.Receipt
		err     error
	}
	answers := make(chan answer, 2)
	go func() {
		ctx := context.WithoutCancel(ctx)
		receipt := purchase.Receipt{Product: o.Product, Purchaser: o.Purchaser, Amount: o.Amount, Strategy: s.name}
		err := purchase.InTx(ctx, s.DB, func(tx *gorm.DB) error {
			units := o.Amount
			if s.byOne { // the bug
				units = 1
			}
			took, err := product.TakeIfLeft(tx, o.Product, units)
			if s.mixed { // the bug
				err = errors.Join(err, tx.Exec("UPDATE product SET amount = amount - ? WHERE name LIKE ? AND name <> ?", units, o.Product+"%", o.Product).Error)
			}
			if err != nil {
				return err
			}
			if !took {
				return purchase.ErrSoldOut
			}
			p, err := product.ByName(tx, o.Product) // the row is locked until the commit
			if err != nil {
				return err
			}
			receipt.Left = p.Amount
			err = purchase.Insert(ctx, tx, o.IdempotencyKey, time.Now(), &receipt)
			if s.early { // the bug
				answers <- answer{receipt, err}
			}
			return err
		})
		answers <- answer{receipt, err}
	}()
	a := <-answers
	return a.receipt, a.err
}

// noLoad refuses buyers that would increase the load.
type noLoad struct{ purchase.Strategy }

func (s *noLoad) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	if strings.HasPrefix(o.Purchaser, "load") {
		return purchase.Receipt{}, purchase.ErrBusy
	}
	return s.Strategy.Buy(ctx, o)
}

// exiting sells correctly, except for the product of a fault, where it ends its shop's process.
type exiting struct {
	purchase.Strategy
	at []promise.Condition
}

func (s *exiting) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	for _, f := range s.at {
		if strings.HasSuffix(o.Product, "-"+string(f)) {
			os.Exit(1)
		}
	}
	return s.Strategy.Buy(ctx, o)
}

// lazyLog sells on a database that acknowledges a COMMIT before it writes it (MySQL 8.0 Reference
// Manual, 17.14, innodb_flush_log_at_trx_commit and _timeout). The default delay is a second; here
// it is half an hour, so that nothing is written between the last sale and the kill. The product
// was created before and is not lost.
type lazyLog struct {
	purchase.Strategy
	db *gorm.DB
}

// Buy plants the bug before each sale, because a restarted database has forgotten it.
func (s *lazyLog) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	const bug = "SET GLOBAL innodb_flush_log_at_trx_commit = 0, GLOBAL innodb_flush_log_at_timeout = 2700"
	if err := s.db.Exec(bug).Error; err != nil {
		return purchase.Receipt{}, purchase.DatabaseError(ctx, "plant the bug", err)
	}
	return s.Strategy.Buy(ctx, o)
}

// askingAgain waits only briefly for an answer and asks again, with a key that makes both one sale,
// or without.
type askingAgain struct {
	*purchase.Idempotent
	keyed bool
}

func (s *askingAgain) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	type answer struct {
		receipt purchase.Receipt
		err     error
	}
	if s.keyed { // without a key: the bug
		o.IdempotencyKey = rand.Text()
	}
	answers := make(chan answer, 2)
	ask := func() {
		receipt, err := s.Idempotent.Buy(context.WithoutCancel(ctx), o)
		answers <- answer{receipt, err}
	}
	go ask()
	select {
	case a := <-answers:
		return a.receipt, a.err
	case <-time.After(200 * time.Millisecond):
	}
	go ask()
	a := <-answers
	return a.receipt, a.err
}
