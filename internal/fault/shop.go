package fault

import (
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"sync"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/testbed"
)

// A Launch makes the command that starts a shop. The shop takes the addresses of its servers from its
// environment and has failpoints. It writes its own address and then its history to stdout.
type Launch func(Times) *exec.Cmd

// OwnShop is a Launch that runs this program as the shop.
func OwnShop(times Times) *exec.Cmd {
	return testbed.Command{LogLevel: "error", Wait: times.Wait, Lease: times.Lease, Conns: times.Conns, Failpoints: true}.At("127.0.0.1:0")
}

// A CellShop is one of the two shop processes that a fault disturbs. Faults can stop its buyers, and its
// history is recorded.
type CellShop struct {
	*testbed.ShopProcess
	number   int           // process index: A is 0, B is 1
	database testbed.Links // proxies to the database; nil if the shop connects to it directly

	mu  sync.Mutex
	log *history.Log // history of the current injection; nil between injections
}

func (s *Servers) startShop(ctx context.Context, number int, launch Launch, times Times, needs []lockstrategy.Need) (_ *CellShop, err error) {
	shop := &CellShop{number: number}
	config, servers := s.lockServers(needs, times.Ensembles)
	config.Process = number
	links, err := testbed.NewLinks(servers)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			links.Cut()
			shop.database.Cut()
		}
	}()
	if config.DB, err = s.urlFor(shop); err != nil {
		return nil, err
	}
	shop.ShopProcess, err = testbed.StartShop(ctx, s.group, links.Lead(config), func(string) *exec.Cmd { return launch(times) }, shop.record)
	if err != nil {
		return nil, err
	}
	shop.Links = links
	return shop, nil
}

// lockServers returns the servers of a shop. It leaves out those that the strategy does not need, so that
// their disks cannot slow the shop down. If `ensembles` is true, ZooKeeper and etcd have several members.
func (s *Servers) lockServers(needs []lockstrategy.Need, ensembles bool) (engine.Config, []engine.LockServer) {
	var names []string
	for _, need := range needs {
		names = append(names, string(need))
	}
	if ensembles {
		return engine.At(s.ensembles.Only(names...))
	}
	return engine.At(s.locks.Only(names...))
}

// urlFor returns the database URL for a shop. If s.front is set, the URL leads through new links of the shop:
// proxies that a fault can cut.
func (s *sqlServer) urlFor(h *CellShop) (string, error) {
	if s.front == nil {
		return s.db.URL(), nil
	}
	var addresses []string
	for _, address := range s.front {
		link, err := testbed.NewLink(address)
		if err != nil {
			return "", err
		}
		h.database, addresses = append(h.database, link), append(addresses, link.Addr)
	}
	user, rest, _ := strings.Cut(s.db.URL(), "@") // url.Parse accepts one host only
	_, path, _ := strings.Cut(rest, "/")
	return user + "@" + strings.Join(addresses, ",") + "/" + path, nil
}

// redis returns the shop's links to Redis: one link, or one to each server of the group.
func (h *CellShop) redis() testbed.Links { return h.Links.Of(string(lockstrategy.NeedsRedis)) }

func (h *CellShop) nodes() testbed.Links { return h.Links.Of(string(lockstrategy.NeedsRedlock)) }

// record adds a line of the shop's history to the log.
func (h *CellShop) record(line []byte) {
	var e history.Event
	h.mu.Lock()
	defer h.mu.Unlock()
	if json.Unmarshal(line, &e) == nil && h.log != nil {
		h.log.Add(e)
	}
}

func (h *CellShop) recordTo(log *history.Log) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.log = log
}

func (h *CellShop) arm(purchaser string, at failpoint.Point) error {
	return h.Tell("hold " + purchaser + " " + string(at))
}

func (h *CellShop) release(purchaser string) error { return h.Tell("go " + purchaser) }

func (h *CellShop) stop() {
	h.recordTo(nil)
	h.Discard()
	h.Links.Cut()
	h.database.Cut()
}
