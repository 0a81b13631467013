package testbed

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oversell/oversell/internal/engine"
)

// Links are proxies between one process and its lock servers, one for each server.
type Links []*Link

// NewLinks starts a link in front of each server. Cut stops them.
func NewLinks(servers []engine.LockServer) (all Links, _ error) {
	for _, s := range servers {
		l, err := NewLink(s.Address())
		if err != nil {
			all.Cut()
			return nil, err
		}
		l.Need = s.Need
		all = append(all, l)
	}
	return all, nil
}

// Of returns the links to servers of one kind, such as deps.Redis.
func (ls Links) Of(need string) (some Links) {
	for _, l := range ls {
		if l.Need == need {
			some = append(some, l)
		}
	}
	return some
}

// Lead returns a configuration that opens the same servers, but through the links. The nodes of a Redis Cluster
// announce their own addresses, so the Redis client gets a map from these addresses to the links (Detours).
func (ls Links) Lead(c engine.Config) engine.Config {
	detours := engine.Detours{}
	maps.Copy(detours, c.Detours)
	for _, l := range ls {
		detours[l.Server] = l.Addr
	}
	lead := func(addresses []string) (led []string) {
		for _, address := range addresses {
			led = append(led, detours.To(address))
		}
		return led
	}
	c.Zookeeper, c.Etcd, c.Detours = lead(c.Zookeeper), lead(c.Etcd), detours
	return c
}

// Cut closes the connections and refuses new ones, until Mend is called.
func (ls Links) Cut() {
	for _, l := range ls {
		l.Cut()
	}
}

// Mend undoes Cut.
func (ls Links) Mend() error { return ls.each((*Link).Mend) }

// Silence drops all traffic, until Heal is called.
func (ls Links) Silence() error { return ls.each((*Link).Silence) }

// Mute drops all answers, until Heal is called.
func (ls Links) Mute() error { return ls.each((*Link).Mute) }

// Delay delays each answer, until Heal is called.
func (ls Links) Delay(by, jitter time.Duration) error {
	return ls.each(func(l *Link) error { return l.Delay(by, jitter) })
}

// Heal undoes Silence, Mute and Delay.
func (ls Links) Heal(ctx context.Context) {
	for _, l := range ls {
		l.Heal(ctx)
	}
}

func (ls Links) each(do func(*Link) error) error {
	var errs []error
	for _, l := range ls {
		errs = append(errs, do(l))
	}
	return errors.Join(errs...)
}

// Answering returns the number of links through which a server answers within the timeout. It asks all
// servers in parallel.
func (ls Links) Answering(timeout time.Duration) int {
	var (
		all sync.WaitGroup
		n   atomic.Int64
	)
	for _, l := range ls {
		all.Go(func() {
			if _, err := l.RoundTrip(timeout); err == nil {
				n.Add(1)
			}
		})
	}
	all.Wait()
	return int(n.Load())
}

// Quickest returns the shortest round trip over all links.
func (ls Links) Quickest() (time.Duration, error) {
	least := time.Hour
	for _, l := range ls {
		took, err := l.RoundTrip(5 * time.Second)
		if err != nil {
			return 0, err
		}
		least = min(least, took)
	}
	return least, nil
}
