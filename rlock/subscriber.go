package rlock

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// linger is how long a channel stays subscribed after its last waiter has
	// left: another one is likely to come.
	linger = time.Second
	// pingEvery is how often a silent subscription is pinged; when one ping has
	// had no answer by the next, the subscription is remade.
	pingEvery = 5 * time.Second
)

// A subscriber is the one subscription connection that the waiters of a Client share.
//
//	waiters -- join, leave --> topics --> steer  -- SUBSCRIBE, UNSUBSCRIBE, PING --> Redis
//	waiters <---- signal ----- topics <-- listen <-- messages, confirmations ------- Redis
//
// A confirmation is a signal too. It follows each SUBSCRIBE, including those of a
// remade connection; a message may have been missed before it.
type subscriber struct {
	redis redis.UniversalClient
	clock Clock
	ctx   context.Context // ends with close
	stop  context.CancelFunc
	done  sync.WaitGroup
	kick  chan struct{} // capacity 1: topics changed

	mu     sync.Mutex
	topics map[string]*topic
	pubsub *redis.PubSub // nil until the first waiter comes
	heard  bool          // something arrived since the last PING
}

// A topic is a channel that at least one waiter listens on.
type topic struct {
	channel string
	signal  chan struct{} // capacity 1: the lock may be free

	// Guarded by subscriber.mu.
	users     int
	asked     bool // SUBSCRIBE was sent
	confirmed bool
	expiry    Timer
}

func newSubscriber(rdb redis.UniversalClient, clock Clock) *subscriber {
	ctx, stop := context.WithCancel(context.Background())
	return &subscriber{redis: rdb, clock: clock, ctx: ctx, stop: stop, kick: make(chan struct{}, 1), topics: map[string]*topic{}}
}

// join returns the topic, and whether its subscription is confirmed already.
func (s *subscriber) join(channel string) (t *topic, listening bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t = s.topics[channel]
	if t == nil {
		t = &topic{channel: channel, signal: make(chan struct{}, 1)}
		s.topics[channel] = t
		s.steerSoon()
	}
	if t.expiry != nil {
		t.expiry.Stop()
		t.expiry = nil
	}
	t.users++
	if s.pubsub == nil && s.ctx.Err() == nil {
		s.pubsub = s.redis.Subscribe(s.ctx)
		s.done.Go(s.listen)
		s.done.Go(s.steer)
	}
	return t, t.confirmed
}

// leave gives the topic up. The last user's topic is dropped after that long.
func (s *subscriber) leave(t *topic, after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.users--
	if t.users > 0 {
		return
	}
	if after == 0 {
		s.drop(t)
		return
	}
	var timer Timer
	timer = s.clock.AfterFunc(after, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if t.expiry == timer && t.users == 0 {
			s.drop(t)
		}
	})
	t.expiry = timer
}

func (s *subscriber) drop(t *topic) {
	if s.topics[t.channel] == t {
		delete(s.topics, t.channel)
		s.steerSoon()
	}
}

func (s *subscriber) steerSoon() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// notify signals a waiter of this process before its message arrives.
func (s *subscriber) notify(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.topics[channel]; t != nil {
		t.wake()
	}
}

func (t *topic) wake() {
	select {
	case t.signal <- struct{}{}:
	default: // a signal is waiting already
	}
}

// steer sends the commands that the topics need. It ignores errors: they are the
// connection's, listen meets them too, and go-redis subscribes to the channels
// again on its next connection.
func (s *subscriber) steer() {
	pinger, due := s.clock.NewTimer(pingEvery)
	defer pinger.Stop()
	subscribed := map[string]bool{}
	asked := false // for a sign of life
	for {
		ping := false
		select {
		case <-s.kick:
		case <-due:
			ping = true
			pinger.Reset(pingEvery)
		case <-s.ctx.Done():
			return
		}
		s.mu.Lock()
		if ping && asked && !s.heard && s.ctx.Err() == nil {
			s.renewConnection()
			clear(subscribed)
		}
		pubsub := s.pubsub
		var add, remove []string
		for channel, t := range s.topics {
			if !t.asked {
				t.asked = true
				subscribed[channel] = true
				add = append(add, channel)
			}
		}
		for channel := range subscribed {
			if s.topics[channel] == nil {
				delete(subscribed, channel)
				remove = append(remove, channel)
			}
		}
		if ping {
			asked, s.heard = true, false
		}
		s.mu.Unlock()
		if len(remove) > 0 {
			_ = pubsub.Unsubscribe(s.ctx, remove...)
		}
		if len(add) > 0 {
			_ = pubsub.Subscribe(s.ctx, add...)
		}
		if ping {
			_ = pubsub.Ping(s.ctx)
		}
	}
}

// renewConnection replaces a connection that has gone silent. s.mu is held.
func (s *subscriber) renewConnection() {
	old := s.pubsub
	s.pubsub = s.redis.Subscribe(s.ctx)
	for _, t := range s.topics {
		t.asked, t.confirmed = false, false
	}
	s.done.Go(func() { _ = old.Close() }) // may have to wait for a dial
}

// listen turns messages and confirmations into signals.
func (s *subscriber) listen() {
	pause := time.Duration(0)
	for s.ctx.Err() == nil {
		s.mu.Lock()
		pubsub := s.pubsub
		s.mu.Unlock()
		arrived, err := pubsub.Receive(s.ctx)
		if err != nil {
			s.broken(pubsub)
			pause = min(max(2*pause, 10*time.Millisecond), time.Second)
			select {
			case <-time.After(pause):
			case <-s.ctx.Done():
			}
			continue
		}
		pause = 0
		s.arrived(arrived)
	}
}

// broken wakes every waiter: each then asks for the lock and so learns whether
// Redis is still there. Where only the subscription fails, waiters poll in this
// way once a second, which is the longest pause of listen.
func (s *subscriber) broken(pubsub *redis.PubSub) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pubsub != pubsub {
		return
	}
	for _, t := range s.topics {
		t.confirmed = false
		t.wake()
	}
}

func (s *subscriber) arrived(what any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = true
	switch m := what.(type) {
	case *redis.Subscription:
		if t := s.topics[m.Channel]; t != nil && m.Kind == "subscribe" {
			t.confirmed = true
			t.wake()
		}
	case *redis.Message:
		if t := s.topics[m.Channel]; t != nil {
			t.wake()
		}
	}
}

func (s *subscriber) close() {
	s.stop()
	s.mu.Lock()
	pubsub := s.pubsub
	for _, t := range s.topics {
		if t.expiry != nil {
			t.expiry.Stop()
		}
	}
	s.mu.Unlock()
	if pubsub != nil {
		_ = pubsub.Close()
	}
	s.done.Wait()
}
