package rlock

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/lockstrategy/keyed"
)

const (
	// linger is how long a channel stays subscribed after its last waiter has left, since another
	// waiter is likely to come.
	linger = time.Second
	// pingEvery is how often the client sends a PING on a silent subscription. If a ping has no answer by the
	// next one, the subscription is replaced.
	pingEvery = 5 * time.Second
)

// A subscriber is the one subscription connection that the waiters of a Client share.
//
//	waiters -- join, leave --> topics --> steer  -- SUBSCRIBE, UNSUBSCRIBE, PING --> Redis
//	waiters <---- signal ----- topics <-- listen <-- messages, confirmations ------- Redis
//
// A confirmation is a signal too. It follows each SUBSCRIBE, including those of a remade connection. The lock
// may have become free before the confirmation, and the message was then missed.
type subscriber struct {
	redis redis.UniversalClient
	clock Clock
	ctx   context.Context // ends with close
	stop  context.CancelFunc
	done  sync.WaitGroup
	kick  chan struct{} // capacity 1; a value means that topics changed

	mu     sync.Mutex
	topics keyed.Map[string, *topic] // topics by channel; a topic stays while a waiter uses it, and for linger afterwards
	pubsub *redis.PubSub             // nil until the first waiter comes
	heard  bool                      // something arrived since the last PING
}

// A topic is a channel that at least one waiter listens on.
type topic struct {
	channel string
	signal  chan struct{} // capacity 1; a value means that the lock may be free

	// Guarded by subscriber.mu.
	asked     bool // SUBSCRIBE was sent
	confirmed bool
	expiry    Timer // fires when linger is over; nil if it does not run
}

func newSubscriber(rdb redis.UniversalClient, clock Clock) *subscriber {
	ctx, stop := context.WithCancel(context.Background())
	return &subscriber{redis: rdb, clock: clock, ctx: ctx, stop: stop, kick: make(chan struct{}, 1)}
}

// join returns the topic, and whether its subscription is already confirmed.
func (s *subscriber) join(channel string) (t *topic, listening bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t = s.topics.Use(channel, func() *topic {
		s.steerSoon()
		return &topic{channel: channel, signal: make(chan struct{}, 1)}
	})
	s.endLinger(t)
	if s.pubsub == nil && s.ctx.Err() == nil {
		s.pubsub = s.redis.Subscribe(s.ctx)
		s.done.Go(s.steer)
	}
	return t, t.confirmed
}

// leave ends a waiter's use of the topic. If no waiter is left, the topic is dropped after the given duration.
func (s *subscriber) leave(t *topic, after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if after == 0 {
		s.release(t)
		return
	}
	s.endLinger(t)
	var timer Timer
	timer = s.clock.AfterFunc(after, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if t.expiry == timer {
			s.endLinger(t)
		}
	})
	t.expiry = timer
}

// endLinger stops the timer of linger, if it runs, and ends that use of the topic. The caller holds s.mu.
func (s *subscriber) endLinger(t *topic) {
	if t.expiry == nil {
		return
	}
	t.expiry.Stop()
	t.expiry = nil
	s.release(t)
}

// release ends one use of the topic. The caller holds s.mu.
func (s *subscriber) release(t *topic) {
	if s.topics.Release(t.channel) {
		s.steerSoon()
	}
}

func (s *subscriber) steerSoon() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// notify signals a waiter of this process at once, before the message from Redis arrives.
func (s *subscriber) notify(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t, used := s.topics.Get(channel); used {
		t.wake()
	}
}

func (t *topic) wake() {
	select {
	case t.signal <- struct{}{}:
	default: // a signal is waiting already
	}
}

// steer sends the commands that the topics need. It ignores errors: they come from the connection, so listen
// sees them too, and go-redis subscribes to the channels again on its next connection.
//
// On a cluster, the first channel determines the node to which the connection goes. A message from the node
// that has the lock's slot need not go over the cluster's bus.
func (s *subscriber) steer() {
	pinger, due := s.clock.NewTimer(pingEvery)
	defer pinger.Stop()
	subscribed := map[string]bool{}
	asked := false     // a PING was sent
	listening := false // listen starts once the first channel is known, which determines the node of a cluster
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
		for channel, t := range s.topics.All() {
			if !t.asked {
				t.asked = true
				subscribed[channel] = true
				add = append(add, channel)
			}
		}
		for channel := range subscribed {
			if _, used := s.topics.Get(channel); !used {
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
		if !listening && len(add) > 0 {
			listening = true
			s.done.Go(s.listen)
		}
		if ping {
			_ = pubsub.Ping(s.ctx)
		}
	}
}

// renewConnection replaces a connection that has gone silent. The caller holds s.mu.
func (s *subscriber) renewConnection() {
	old := s.pubsub
	s.pubsub = s.redis.Subscribe(s.ctx)
	for _, t := range s.topics.All() {
		t.asked, t.confirmed = false, false
	}
	s.done.Go(func() { _ = old.Close() }) // Close may have to wait for a dial
}

// listen converts messages and confirmations to signals.
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

// broken wakes every waiter after an error of the subscription. Each of them asks for the lock and so learns
// whether Redis can be reached. While only the subscription fails, the waiters poll about once a second in
// this way, since listen pauses for at most a second between two errors.
func (s *subscriber) broken(pubsub *redis.PubSub) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pubsub != pubsub {
		return
	}
	for _, t := range s.topics.All() {
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
		if t, used := s.topics.Get(m.Channel); used && m.Kind == "subscribe" {
			t.confirmed = true
			t.wake()
		}
	case *redis.Message:
		if t, used := s.topics.Get(m.Channel); used {
			t.wake()
		}
	}
}

func (s *subscriber) close() {
	s.stop()
	s.mu.Lock()
	pubsub := s.pubsub
	for _, t := range s.topics.All() {
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
