package explore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An Event is something that happens to the buyers, as a step of the schedule.
// Each happens at most once in a schedule.
type Event string

// The events.
const (
	Expire Event = "expire" // every lease runs out, unnoticed by its holder: a pause, a slow section
	Crash  Event = "crash"  // a buyer is never heard of again, its connections end
	Forget Event = "forget" // one Redis loses its keys
	Renew  Event = "renew"  // a buyer's watchdog is due

	Timeout Event = "timeout" // a buyer has waited in the database for long enough
)

// Events in display order.
func Events() []Event { return []Event{Expire, Crash, Forget, Renew, Timeout} }

// ParseEvents reads a list; "all" is every event.
func ParseEvents(names []string) ([]Event, error) {
	var events []Event
	for _, name := range names {
		switch {
		case name == "all":
			events = append(events, Events()...)
		case slices.Contains(Events(), Event(name)):
			events = append(events, Event(name))
		default:
			return nil, fmt.Errorf("event %q is not known; there are expire, crash, forget, renew, timeout and all", name)
		}
	}
	return slices.DeleteFunc(Events(), func(e Event) bool { return !slices.Contains(events, e) }), nil
}

// An action is what the scheduler can do next.
type action struct {
	token  string // in the replay line: "1", "1a" (node a), "1r" (its watchdog), "expire", "crash1", "forget", "forget-a", "renew1", "timeout1"
	event  Event  // "" lets op go
	buyer  int
	op     *op
	with   *op // let go together with op, see overlap.go
	server *redisServer

	name    string // the same in every run
	touches string // server; "" for all
	effect  effect
	aside   bool // as op.aside
}

// actions are the choices that there are, the buyers in order and then the
// events.
func (r *run) actions(ctx context.Context) (all []action, err error) {
	for _, b := range r.buyers {
		var own []action
		for _, o := range b.gate {
			if b.runnable(o) {
				own = append(own, action{token: r.token(o), buyer: b.id, op: o, name: o.name, touches: o.server, effect: o.effect, aside: o.aside})
			}
		}
		slices.SortFunc(own, func(a, b action) int { return strings.Compare(a.token, b.token) })
		for i := 1; i < len(own); i++ {
			if own[i].token == own[i-1].token {
				return nil, fmt.Errorf("%w: buyer %d sends two commands to one server at once: %s, %s", ErrHarness, b.id, own[i-1].name, own[i].name)
			}
		}
		all = append(all, own...)
	}
	if most := r.x.config.MaxEvents; most > 0 && len(r.struck) >= most {
		return all, nil
	}
	for _, e := range r.x.config.Events {
		if r.struck[string(e)] > 0 {
			continue
		}
		switch e {
		case Expire:
			leases, err := r.x.leases(ctx)
			if err != nil {
				return nil, err
			}
			if len(leases) > 0 {
				all = append(all, action{token: "expire", event: Expire, name: "expire", touches: oneServer(leases)})
			}
		case Crash:
			for _, b := range r.buyers {
				if !b.over && !b.crashed && b.steps > 0 {
					all = append(all, action{token: fmt.Sprintf("crash%d", b.id), event: Crash, buyer: b.id, name: "crash"})
				}
			}
		case Forget:
			for _, s := range r.x.servers {
				n, err := s.held(ctx)
				if err != nil {
					return nil, err
				}
				if n > 0 {
					all = append(all, action{token: "forget" + suffix(s.name), event: Forget, server: s, name: "forget " + s.name, touches: s.name})
				}
			}
		case Renew:
			for _, b := range r.buyers {
				if len(r.due(b)) > 0 {
					all = append(all, action{token: fmt.Sprintf("renew%d", b.id), event: Renew, buyer: b.id, name: "renew"})
				}
			}
		case Timeout:
			for _, b := range r.buyers {
				if o := b.waits(); o != nil {
					all = append(all, action{token: fmt.Sprintf("timeout%d", b.id), event: Timeout, buyer: b.id, op: o, name: "timeout", touches: "sql"})
				}
			}
		}
	}
	return all, nil
}

// token names an op's buyer, what is not the buyer's own doing and, of a
// Redlock node, the node.
func (r *run) token(o *op) string {
	beside := ""
	if o.aside {
		beside = "r"
	}
	return strconv.Itoa(o.buyer) + beside + strings.TrimPrefix(suffix(o.server), "-")
}

// suffix is "-a" for the first Redlock node.
func suffix(server string) string {
	n, err := strconv.Atoi(strings.TrimPrefix(server, "redlock-"))
	if err != nil {
		return ""
	}
	return "-" + string(rune('a'+n-1))
}

// held is how many of the known keys are there.
func (s *redisServer) held(ctx context.Context) (int64, error) {
	keys := s.keys.all()
	if len(keys) == 0 {
		return 0, nil
	}
	if s.counted {
		return s.count, nil
	}
	n, err := s.admin.Exists(ctx, keys...).Result()
	if err != nil {
		return 0, fmt.Errorf("look at %s: %w", s.name, err)
	}
	s.counted, s.count = true, n
	return n, nil
}

// A lease is a key that will run out: by its TTL, or by a time in it that the
// buyers' clock is compared with.
type lease struct {
	server *redisServer
	key    string
	left   time.Duration
	clock  bool
}

// leases are those that have not run out.
func (x *Explorer) leases(ctx context.Context) (found []lease, _ error) {
	for _, s := range x.servers {
		for _, key := range s.keys.all() {
			ttl, err := s.admin.PTTL(ctx, key).Result()
			if err != nil {
				return nil, fmt.Errorf("look at %s: %w", s.name, err)
			}
			switch {
			case ttl > 0:
				found = append(found, lease{s, key, ttl, false})
			case ttl == -1: // no TTL
				value, _ := s.admin.Get(ctx, key).Int64() // an error: it is no number
				if value > x.clock.Now().UnixMilli() {
					found = append(found, lease{s, key, 0, true})
				}
			}
		}
	}
	return found, nil
}

func oneServer(leases []lease) string {
	for _, l := range leases {
		if l.server != leases[0].server {
			return ""
		}
	}
	return leases[0].server.name
}

// expire lets every lease run out, or spares those that a watchdog has renewed
// since they aged, see Explorer.age: they have more than two thirds of their TTL.
func (r *run) expire(ctx context.Context, spare bool) (names []string, _ error) {
	leases, err := r.x.leases(ctx)
	if err != nil {
		return nil, err
	}
	for _, l := range leases {
		if spare && l.left > forever*5/6 {
			continue
		}
		names = append(names, l.key)
		r.changed(l.server)
		if l.clock {
			r.x.clock.advance(2 * forever)
			continue
		}
		if err := l.server.admin.Del(ctx, l.key).Err(); err != nil {
			return nil, err
		}
		// Who waits for a message looks by itself when the lease must be over.
		if err := r.wake(ctx, l.server, l.key); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// wake stands for the timer of a waiter that knows when the lease would end.
func (r *run) wake(ctx context.Context, s *redisServer, key string) error {
	listeners, err := s.admin.Publish(ctx, channel(key), "0").Result()
	r.x.gates.pubsub.tell(int(listeners))
	return err
}

// channel is where the release of a lock is announced.
func channel(key string) string {
	if strings.Contains(key, "{") {
		return "redisson_lock__channel:" + key
	}
	return "redisson_lock__channel:{" + key + "}"
}

// wakeAll does so for every lock: also of one that is gone, whose waiters have
// seen when it would have ended. It returns those that somebody waits for.
func (r *run) wakeAll(ctx context.Context) (waited []string, _ error) {
	for _, s := range r.x.servers {
		for _, key := range s.keys.all() {
			before := r.x.gates.pubsub.count()
			if err := r.wake(ctx, s, key); err != nil {
				return nil, err
			}
			if r.x.gates.pubsub.count() > before {
				waited = append(waited, key)
			}
		}
	}
	return waited, nil
}

// changed notes a change that no buyer made.
func (r *run) changed(s *redisServer) {
	s.counted = false
	for _, b := range r.buyers {
		b.changes[s.name]++
	}
}

// do makes one step, and returns when everything stands still again.
func (r *run) do(ctx context.Context, a action) error {
	switch a.event {
	case "":
		if err := r.release(a.op, proceed); err != nil {
			return err
		}
	case together:
		if err := r.overlap(ctx, a); err != nil {
			return err
		}
	case Expire:
		if _, err := r.expire(ctx, false); err != nil {
			return err
		}
	case Forget:
		keys := a.server.keys.all()
		if err := a.server.admin.Del(ctx, keys...).Err(); err != nil {
			return err
		}
		r.changed(a.server)
	case Renew:
		r.ring(r.due(r.buyers[a.buyer-1]))
	case Crash:
		if err := r.crash(ctx, r.buyers[a.buyer-1]); err != nil {
			return err
		}
	case Timeout:
		if err := r.timeOut(ctx, a.op); err != nil {
			return err
		}
	}
	if a.event != "" && a.event != together {
		r.struck[string(a.event)]++
	}
	return r.settle(ctx)
}

// waits is the buyer's statement that waits for another's transaction; nil:
// none does. One that was refused and could be tried again does not wait.
func (b *buyer) waits() *op {
	if b.blocked {
		return b.flying[0]
	}
	for _, o := range b.gate {
		if o.blocked && !b.runnable(o) {
			return o
		}
	}
	return nil
}

// timeOut ends the wait of a statement, in the database or at the gate.
func (r *run) timeOut(ctx context.Context, o *op) error {
	o.timedOut.Store(true)
	if !r.flies(o) {
		return r.release(o, timeOut)
	}
	r.unblocks = true
	return r.x.database.interrupt(ctx, o.conn)
}

// crash ends a buyer: no command of its reaches a server any more, and those
// that it had open see its connections end.
func (r *run) crash(ctx context.Context, b *buyer) error {
	r.mu.Lock()
	r.crashed[b.id] = true
	r.mu.Unlock()
	b.crashed = true
	r.unblocks = true
	b.cancel(errCrashed)
	for _, o := range b.gate {
		o.order <- die
	}
	b.gate = nil
	r.freed(b)
	if err := r.x.kill(ctx, r.x.connector(b.id), b.id); err != nil {
		return err
	}
	for _, other := range r.buyers {
		other.changes["sql"]++
		other.ends++
	}
	return nil
}
