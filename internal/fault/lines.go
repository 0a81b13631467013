package fault

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// Lines are the links of one process to the lock servers of an engine, for a process that
// this package does not start. A Shop has its own.
type Lines struct {
	servers []engine.LockServer
	links   []*link // one a server
}

// NewLines puts a link before each server. Close ends them.
func NewLines(servers []engine.LockServer) (_ *Lines, err error) {
	lines := &Lines{servers: slices.Clone(servers)}
	defer func() {
		if err != nil {
			_ = lines.Close()
		}
	}()
	probes := map[lockstrategy.Need]string{
		lockstrategy.NeedsRedis: probeRedis, lockstrategy.NeedsRedlock: probeRedis, lockstrategy.NeedsZookeeper: probeZookeeper, lockstrategy.NeedsEtcd: probeEtcd,
	}
	proxies := newProxies()
	for _, s := range servers {
		l, err := proxies.link(s.Address(), probes[lockstrategy.Need(s.Need)])
		if err != nil {
			return nil, err
		}
		lines.links = append(lines.links, l)
	}
	return lines, nil
}

// Lead is how a process opens the same servers through the lines.
func (n *Lines) Lead(c engine.Config) engine.Config {
	all := engine.Detours{}
	for i, l := range n.links {
		all[n.servers[i].Address()] = l.addr
	}
	lead := func(addresses []string) (led []string) {
		for _, address := range addresses {
			led = append(led, all.To(address))
		}
		return led
	}
	c.Zookeeper, c.Etcd = lead(c.Zookeeper), lead(c.Etcd)
	c.Detours = maps.Clone(c.Detours)
	if c.Detours == nil {
		c.Detours = engine.Detours{}
	}
	maps.Copy(c.Detours, all)
	return c
}

// Close ends the connections.
func (n *Lines) Close() error {
	for _, l := range n.links {
		l.cut()
	}
	return nil
}

// Delay holds back each answer that comes through the lines, as the fault latency does, until
// Heal.
func Delay(lines ...*Lines) (proof string, _ error) {
	var links []*link
	for _, n := range lines {
		links = append(links, n.links...)
	}
	if err := delay(links); err != nil {
		return "", err
	}
	took, err := quickest(links)
	if err != nil {
		return "", err
	}
	return held(took)
}

// Part lets nothing through, as the fault partition does, until Heal. It proves it within the
// timeout.
func (n *Lines) Part(timeout time.Duration) (proof string, _ error) {
	if err := part(n.links, timeout, func() {}); err != nil {
		return "", err
	}
	return fmt.Sprintf("its way to %d lock servers let no question through from then on, and had before", len(n.links)), nil
}

// Heal undoes Delay and Part.
func (n *Lines) Heal(ctx context.Context) {
	for _, l := range n.links {
		l.heal(ctx)
	}
}

// Cut closes the connections to a server and refuses new ones, until Mend.
func (n *Lines) Cut(address string) {
	for i, s := range n.servers {
		if s.Address() == address {
			n.links[i].cut()
		}
	}
}

// Mend undoes Cut.
func (n *Lines) Mend() error {
	var errs []error
	for _, l := range n.links {
		errs = append(errs, l.mend())
	}
	return errors.Join(errs...)
}

// Revoke takes the lease away from the first in the product's line, as the fault lease-revoked
// does, at whichever of the servers is needed.
func Revoke(ctx context.Context, servers []engine.LockServer, needs []lockstrategy.Need, product string) (proof string, _ error) {
	there := map[lockstrategy.Need]string{}
	for _, s := range servers {
		there[lockstrategy.Need(s.Need)] = s.Address()
	}
	lock, err := coordinatorOf(needs, there)
	if err != nil {
		return "", err
	}
	defer lock.close()
	before, gone, err := revoke(ctx, lock, product, func(place) {})
	switch {
	case err != nil:
		return "", err
	case !gone:
		return "", missed("the %s was there after it was revoked", before.lease())
	}
	return fmt.Sprintf("its %s was revoked, and the server knows neither it nor its place in line any more", before.lease()), nil
}
