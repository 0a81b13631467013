package rlock

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"

	"github.com/oversell/oversell/internal/lockstrategy/keyed"
)

// A Holder owns locks, as a thread does in Java. A Holder may take a lock again that it already
// holds. Goroutines that share a Holder do not exclude each other.
type Holder struct {
	id uint64

	mu    sync.Mutex
	slots keyed.Map[slotKey, *slot]
}

type slotKey struct {
	client *Client
	name   string
}

// NewHolder returns a holder that holds no lock.
func NewHolder() *Holder {
	// Java reads a thread's id as a positive long.
	return &Holder{id: rand.Uint64() >> 1}
}

type holderKey struct{}

// WithHolder returns a context whose locks belong to h. Without a Holder in its context, every call of
// Lock gets a new Holder, so a second Lock waits for the first.
func WithHolder(ctx context.Context, h *Holder) context.Context {
	return context.WithValue(ctx, holderKey{}, h)
}

func holderOf(ctx context.Context) (*Holder, bool) {
	h, ok := ctx.Value(holderKey{}).(*Holder)
	return h, ok
}

func (h *Holder) field(c *Client) string {
	return c.id + ":" + strconv.FormatUint(h.id, 10)
}

// A slot is the state of one Holder for one lock. It exists while the Holder has the lock or a call is in
// progress.
type slot struct {
	holder *Holder
	key    slotKey
	field  string
	busy   chan struct{} // a mutex for current and for the commands on the holder's field in Redis

	current *hold // nil: the holder does not have the lock; otherwise Holder.slots keeps the slot
}

// enter finds or makes the slot. leave must follow.
func (h *Holder) enter(c *Client, name string) *slot {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := slotKey{c, name}
	return h.slots.Use(key, func() *slot {
		return &slot{holder: h, key: key, field: h.field(c), busy: make(chan struct{}, 1)}
	})
}

// join does the same as enter for a caller that already has the slot. After Unlock, Holder.slots may have
// dropped a slot to which a lease still refers; join then adds it again.
func (s *slot) join() {
	s.holder.mu.Lock()
	defer s.holder.mu.Unlock()
	s.holder.slots.Use(s.key, func() *slot { return s })
}

func (s *slot) leave() {
	s.holder.mu.Lock()
	defer s.holder.mu.Unlock()
	s.holder.slots.Release(s.key)
}

// hold sets slot.current; nil means that the holder does not have the lock. Call it between begin and end.
func (s *slot) hold(h *hold) {
	switch before := s.current; {
	case before == nil && h != nil:
		s.join()
	case before != nil && h == nil:
		defer s.leave()
	}
	s.current = h
}

// begin waits until no other goroutine uses the slot. If it returns true, the caller must call end.
func (s *slot) begin(ctx context.Context) bool {
	select {
	case s.busy <- struct{}{}:
		s.join()
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *slot) end() {
	<-s.busy
	s.leave()
}
