// Package exercise is the reference: buyers that come during a transaction share the next one.
package exercise

import (
	"context"
	"slices"
	"sync"

	"gorm.io/gorm"

	"github.com/oversell/oversell/exercises/kata"
)

// New is called once in each process of the shop.
func New(kit kata.Kit) kata.Strategy { return &shop{kit: kit, lines: map[string]*line{}} }

type shop struct {
	kit   kata.Kit
	mu    sync.Mutex
	lines map[string]*line // by product
}

// A line is the queue of one product: the waiting buyers, and whether one of them sells.
type line struct {
	waiting []*member
	led     bool
}

// A member is a buyer in a group.
type member struct {
	order   kata.Order
	receipt kata.Receipt
	err     error
	done    chan struct{}
}

// Buy joins the queue. If no buyer of this process is selling, this buyer sells to all waiting buyers until
// the queue is empty.
func (s *shop) Buy(ctx context.Context, o kata.Order) (kata.Receipt, error) {
	m := &member{order: o, done: make(chan struct{})}
	s.mu.Lock()
	l := s.lines[o.Product]
	if l == nil {
		l = &line{}
		s.lines[o.Product] = l
	}
	l.waiting = append(l.waiting, m)
	lead := !l.led
	l.led = true
	s.mu.Unlock()
	if lead {
		s.lead(context.WithoutCancel(ctx), l)
	}
	select {
	case <-m.done:
	case <-ctx.Done():
		if s.leave(l, m) {
			return kata.Receipt{}, context.Cause(ctx)
		}
		<-m.done // another buyer is selling to it
	}
	return m.receipt, m.err
}

// lead sells to groups until the queue is empty.
func (s *shop) lead(ctx context.Context, l *line) {
	for {
		s.mu.Lock()
		group := l.waiting
		l.waiting = nil
		l.led = len(group) > 0
		s.mu.Unlock()
		if len(group) == 0 {
			return
		}
		if err := s.sell(ctx, group); err != nil {
			for _, m := range group {
				m.receipt, m.err = kata.Receipt{}, err
			}
		}
		for _, m := range group { // after the COMMIT
			close(m.done)
		}
	}
}

// leave removes a buyer from the queue, unless another buyer is already selling to it.
func (s *shop) leave(l *line, m *member) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(l.waiting, m)
	if i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
	return i >= 0
}

// sell sells to a group in one transaction, in order of arrival.
func (s *shop) sell(ctx context.Context, group []*member) error {
	product := group[0].order.Product
	return s.kit.InTx(ctx, func(tx *gorm.DB) error {
		// Write first, which locks the row until the COMMIT, also for other processes.
		if _, err := s.kit.Exec(ctx, tx, "UPDATE product SET version = version + 1 WHERE name = ?", product); err != nil {
			return err
		}
		p, err := s.kit.Read(ctx, tx, product)
		if err != nil {
			return err
		}
		left := p.Amount
		for _, m := range group {
			if m.err = nil; m.order.Amount > left {
				m.err = kata.ErrSoldOut
				continue
			}
			left -= m.order.Amount
			if m.receipt, err = s.kit.Record(ctx, tx, m.order, left); err != nil {
				return err
			}
		}
		_, err = s.kit.Exec(ctx, tx, "UPDATE product SET amount = ? WHERE name = ?", left, product)
		return err
	})
}
