package main

import (
	"context"
	"crypto/rand"
	"os"
	"strings"
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
	outlives   bool // the section does not end with the lease
	leak       bool // the release stops when the buyer hangs up, but the renewal does not
}

func (s *leased) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.Settings.Wait, purchase.ErrBusy)
	defer cancel()
	key, token := "planted:"+s.name+":"+o.Product, rand.Text()
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
	lasts := s.Settings.LeaseTTL * 9 / 10
	if s.outlives { // the bug
		lasts = s.Settings.Wait
	}
	section, end := context.WithTimeoutCause(ctx, lasts, purchase.ErrLockLost)
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

// keepingConnection takes a connection before it waits for its lock. Its section needs a second one.
type keepingConnection struct{ *leased }

func (s *keepingConnection) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.Settings.Wait, purchase.ErrBusy)
	defer cancel()
	pool, err := s.DB.DB()
	if err != nil {
		return purchase.Receipt{}, err
	}
	conn, err := pool.Conn(ctx)
	if err != nil {
		return purchase.Receipt{}, purchase.DatabaseError(ctx, "connect", err)
	}
	defer conn.Close()
	return s.leased.Buy(ctx, o)
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

// neverRenewed returns dependencies for a watchdog whose timer never fires.
func neverRenewed(d lockstrategy.Deps) lockstrategy.Deps {
	d.Renewal = func(context.Context, time.Duration, func(context.Context)) rlock.Timer {
		return time.AfterFunc(time.Hour, func() {})
	}
	return d
}

// answering sells by a guarded statement. It may answer its buyer before the COMMIT.
type answering struct {
	lockstrategy.Deps
	name  string
	early bool
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
			took, err := product.TakeIfLeft(tx, o.Product, o.Amount)
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
