package own

import (
	"context"
	"strings"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/serverstate"
)

// passing makes time pass when no buyer can move.
type passing struct {
	r       *run
	phase   phase
	renewed bool // the leases have aged, and the watchdogs of living buyers have renewed theirs
	woken   bool // the buyers that wait for a message have polled once by themselves
	ranOut  bool // a lease has expired
	stopped bool // no time passes in this run
}

// A phase is the next effect of passing time. When a buyer makes progress, the first phase comes next again.
type phase int

const (
	renewals phase = iota // next, the watchdogs of living buyers renew
	expiry                // then leases without a renewal expire
	over                  // last, the timers of waiting buyers fire
)

// time makes time pass, and returns the effect in words. If it returns false, nothing changed, so a waiting buyer would
// wait forever.
//
// First, all leases age by a third of their TTL, and the watchdogs of living buyers renew theirs. If still no buyer can
// move, the leases that were not renewed expire. So a lease does not expire while its holder's watchdog lives.
func (p *passing) time(ctx context.Context) (happened string, passed bool, err error) {
	if p.stopped {
		return "", false, nil
	}
	if p.phase == renewals {
		p.phase = expiry
		var armed []*timer
		for _, b := range p.r.buyers {
			armed = append(armed, p.r.dogs.armed(b)...)
		}
		if len(armed) > 0 {
			p.renewed = true
			if err := p.age(ctx); err != nil {
				return "", false, err
			}
			p.r.fire(armed)
			return "time passes: every watchdog that lives is due", true, nil
		}
	}
	if p.phase == expiry {
		p.phase = over
		keys, err := p.expire(ctx, p.renewed)
		p.renewed = false
		p.ranOut = p.ranOut || len(keys) > 0
		if len(keys) > 0 || err != nil {
			p.phase = renewals
			return ranOut(keys), len(keys) > 0, err
		}
	}
	if p.woken {
		return "", false, nil
	}
	p.woken = true // only once: a buyer that gets no lock even now waits forever
	keys, err := p.wakeAll(ctx)
	return ranOut(keys), len(keys) > 0, err
}

func ranOut(keys []string) string {
	return "time passes until the leases expire: " + strings.Join(keys, ", ")
}

func (p *passing) age(ctx context.Context) error {
	leases, err := p.r.x.servers.leases(ctx, p.r.x.clock.Now())
	if err != nil {
		return err
	}
	for _, l := range leases {
		if err := l.Age(ctx); err != nil {
			return err
		}
	}
	return nil
}

// wakeAll wakes all buyers that wait for a lock, and returns these locks. Some of them may no longer exist, but their
// waiting buyers still poll at the time at which the lease would have ended.
func (p *passing) wakeAll(ctx context.Context) (waited []string, _ error) {
	for _, s := range p.r.x.servers {
		for _, key := range s.Keys() {
			listeners, err := p.wake(ctx, s, key)
			if err != nil {
				return nil, err
			}
			if listeners > 0 {
				waited = append(waited, key)
			}
		}
	}
	return waited, nil
}

// wake acts like the timer of a waiting buyer, which polls when the lease should have ended.
func (p *passing) wake(ctx context.Context, s *serverstate.Redis, key string) (listeners int, err error) {
	listeners, err = s.Notify(ctx, key)
	p.r.x.gates.PubSub.Notified(listeners)
	return listeners, err
}

// expire makes every lease expire. If `spare` is true, it spares the leases that a watchdog has renewed since the last
// call of the method age.
func (p *passing) expire(ctx context.Context, spare bool) (keys []string, _ error) {
	r := p.r
	leases, err := r.x.servers.leases(ctx, r.x.clock.Now())
	if err != nil {
		return nil, err
	}
	if r.x.spec.Strategy.TimesVotes && len(leases) > 0 {
		r.x.clock.advance(2 * schedule.Forever)
	}
	for _, l := range leases {
		if spare && l.Renewed() {
			continue
		}
		keys = append(keys, l.Key)
		l.Server.Touch()
		r.buyers.changed(l.Server.Name)
		if l.ByClock {
			r.x.clock.advance(2 * schedule.Forever)
			continue
		}
		if err := l.End(ctx); err != nil {
			return nil, err
		}
		// A buyer that waits for a message has a timer, too: it polls when the lease should have ended.
		if _, err := p.wake(ctx, l.Server, l.Key); err != nil {
			return nil, err
		}
	}
	return keys, nil
}
