package rlock

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// linger is how long a channel stays subscribed after its last waiter:
	// the next one is likely.
	linger = time.Second
	// pingEvery is how often a silent subscription is asked for a sign of
	// life; after two without one it is made anew.
	pingEvery = 5 * time.Second
)

// A hub is the one subscription connection that the waiters of a Client share.
//
//	waiters -- join, leave --> topics --> steer  -- SUBSCRIBE, UNSUBSCRIBE, PING --> Redis
//	waiters <---- signal ----- topics <-- listen <-- messages, confirmations ------- Redis
//
// A confirmation is a signal too: it follows each SUBSCRIBE, also that of a
// connection made anew, and until then a message may have been missed.
type hub struct {
	redis redis.UniversalClient
	clock Clock
	ctx   context.Context // ends with close
	stop  context.CancelFunc
	done  sync.WaitGroup
	kick  chan struct{} // capacity 1: topics changed

	mu     sync.Mutex
	topics map[string]*topic
	pubsub *redis.PubSub // nil until somebody waits
	heard  bool          // something came since the last PING
}

// A topic is a channel that somebody waits on.
type topic struct {
	channel string
	signal  chan struct{} // capacity 1: the lock may be free

	// Guarded by hub.mu.
	users     int
	asked     bool // SUBSCRIBE was sent
	confirmed bool
	expiry    Timer
}

func newHub(rdb redis.UniversalClient, clock Clock) *hub {
	ctx, stop := context.WithCancel(context.Background())
	return &hub{redis: rdb, clock: clock, ctx: ctx, stop: stop, kick: make(chan struct{}, 1), topics: map[string]*topic{}}
}

// join returns the topic, and whether its messages are sure to arrive already.
func (h *hub) join(channel string) (t *topic, listening bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t = h.topics[channel]
	if t == nil {
		t = &topic{channel: channel, signal: make(chan struct{}, 1)}
		h.topics[channel] = t
		h.steerSoon()
	}
	if t.expiry != nil {
		t.expiry.Stop()
		t.expiry = nil
	}
	t.users++
	if h.pubsub == nil && h.ctx.Err() == nil {
		h.pubsub = h.redis.Subscribe(h.ctx)
		h.done.Go(h.listen)
		h.done.Go(h.steer)
	}
	return t, t.confirmed
}

// leave gives up the topic; without users it is dropped after a while.
func (h *hub) leave(t *topic, after time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t.users--
	if t.users > 0 {
		return
	}
	if after == 0 {
		h.drop(t)
		return
	}
	var timer Timer
	timer = h.clock.AfterFunc(after, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if t.expiry == timer && t.users == 0 {
			h.drop(t)
		}
	})
	t.expiry = timer
}

func (h *hub) drop(t *topic) {
	if h.topics[t.channel] == t {
		delete(h.topics, t.channel)
		h.steerSoon()
	}
}

func (h *hub) steerSoon() {
	select {
	case h.kick <- struct{}{}:
	default:
	}
}

// hint signals a waiter of this process before its message arrives.
func (h *hub) hint(channel string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.topics[channel]; t != nil {
		t.wake()
	}
}

func (t *topic) wake() {
	select {
	case t.signal <- struct{}{}:
	default: // one is waiting to be seen
	}
}

// steer sends what the topics ask for. Its errors are those of the connection,
// which listen meets too; go-redis remembers the channels and asks for them
// again on the next one.
func (h *hub) steer() {
	pinger, due := h.clock.NewTimer(pingEvery)
	defer pinger.Stop()
	subscribed := map[string]bool{}
	asked := false // for a sign of life
	for {
		ping := false
		select {
		case <-h.kick:
		case <-due:
			ping = true
			pinger.Reset(pingEvery)
		case <-h.ctx.Done():
			return
		}
		h.mu.Lock()
		if ping && asked && !h.heard && h.ctx.Err() == nil {
			h.renewConnection()
			clear(subscribed)
		}
		pubsub := h.pubsub
		var add, remove []string
		for channel, t := range h.topics {
			if !t.asked {
				t.asked = true
				subscribed[channel] = true
				add = append(add, channel)
			}
		}
		for channel := range subscribed {
			if h.topics[channel] == nil {
				delete(subscribed, channel)
				remove = append(remove, channel)
			}
		}
		if ping {
			asked, h.heard = true, false
		}
		h.mu.Unlock()
		if len(remove) > 0 {
			_ = pubsub.Unsubscribe(h.ctx, remove...)
		}
		if len(add) > 0 {
			_ = pubsub.Subscribe(h.ctx, add...)
		}
		if ping {
			_ = pubsub.Ping(h.ctx)
		}
	}
}

// renewConnection replaces one that has gone silent. h.mu is held.
func (h *hub) renewConnection() {
	old := h.pubsub
	h.pubsub = h.redis.Subscribe(h.ctx)
	for _, t := range h.topics {
		t.asked, t.confirmed = false, false
	}
	h.done.Go(func() { _ = old.Close() }) // may have to wait for a dial
}

// listen turns what arrives into signals.
func (h *hub) listen() {
	pause := time.Duration(0)
	for h.ctx.Err() == nil {
		h.mu.Lock()
		pubsub := h.pubsub
		h.mu.Unlock()
		arrived, err := pubsub.Receive(h.ctx)
		if err != nil {
			h.broken(pubsub)
			pause = min(max(2*pause, 10*time.Millisecond), time.Second)
			select {
			case <-time.After(pause):
			case <-h.ctx.Done():
			}
			continue
		}
		pause = 0
		h.arrived(arrived)
	}
}

// broken wakes everybody: who asks for the lock now learns whether Redis is
// still there. Where only the subscription fails, waiters so look once a
// second, which is how long listen pauses at most.
func (h *hub) broken(pubsub *redis.PubSub) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pubsub != pubsub {
		return
	}
	for _, t := range h.topics {
		t.confirmed = false
		t.wake()
	}
}

func (h *hub) arrived(what any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heard = true
	switch m := what.(type) {
	case *redis.Subscription:
		if t := h.topics[m.Channel]; t != nil && m.Kind == "subscribe" {
			t.confirmed = true
			t.wake()
		}
	case *redis.Message:
		if t := h.topics[m.Channel]; t != nil {
			t.wake()
		}
	}
}

func (h *hub) close() {
	h.stop()
	h.mu.Lock()
	pubsub := h.pubsub
	for _, t := range h.topics {
		if t.expiry != nil {
			t.expiry.Stop()
		}
	}
	h.mu.Unlock()
	if pubsub != nil {
		_ = pubsub.Close()
	}
	h.done.Wait()
}
