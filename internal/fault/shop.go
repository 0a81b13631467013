package fault

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// A Launch makes the command of a shop that takes its servers from its environment,
// has its failpoints on, and writes to stdout where it serves and then its history.
type Launch func(Times) *exec.Cmd

// A Shop is one process behind a link of its own to each lock server.
type Shop struct {
	URL      string
	number   int // of the process: A is 0, B is 1
	process  *localserver.Process
	commands *os.File // its stdin
	database *link    // nil: none; see Testbed.behind
	redis    []*link  // one, or one to each server of the group
	nodes    []*link
	others   []*link // ZooKeeper, etcd

	mu  sync.Mutex
	log *history.Log // of the present play; nil between plays
}

// startShop starts a shop on the servers and waits until it serves.
func (s *Servers) startShop(ctx context.Context, number int, launch Launch, times Times, needs []lockstrategy.Need) (_ *Shop, err error) {
	shop := &Shop{number: number}
	defer func() {
		if err != nil {
			shop.stop()
		}
	}()
	env, err := s.connect(shop, needs)
	if err != nil {
		return nil, err
	}
	stdin, commands, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdin.Close() // the child has its own
	shop.commands = commands
	cmd := launch(times)
	cmd.Env = append(append(os.Environ(), cmd.Env...), env...)
	cmd.Stdin = stdin
	child, err := localserver.StartShop(ctx, s.group, cmd, shop.record)
	if err != nil {
		return nil, err
	}
	shop.URL, shop.process = child.URL, child.Process
	return shop, nil
}

// connect makes the links, and returns the environment that leads the shop to
// them. Only strategies that need ZooKeeper and etcd get them: when the disk stalls
// that these sync to, other strategies must not stall with it.
func (s *Servers) connect(h *Shop, needs []lockstrategy.Need) (env []string, err error) {
	redis, dial, err := s.connectRedis(h)
	if err != nil {
		return nil, err
	}
	var nodes []string
	for _, node := range s.nodes {
		l, err := s.proxies.link(node.Addr, probeRedis)
		if err != nil {
			return nil, err
		}
		h.nodes = append(h.nodes, l)
		nodes = append(nodes, "redis://"+l.addr)
	}
	database, err := s.databaseURL(h)
	if err != nil {
		return nil, err
	}
	env = []string{
		"SHOP_DB_URL=" + database, "SHOP_REDIS_URL=" + redis, "SHOP_DIAL=" + dial.String(), "SHOP_REDLOCK_URLS=" + strings.Join(nodes, ","),
		"SHOP_ZOOKEEPER_HOSTS=", "SHOP_ETCD_HOSTS=", engine.ProcessEnv(h.number),
	}
	if s.zookeeper != nil && slices.Contains(needs, lockstrategy.NeedsZookeeper) {
		l, err := s.proxies.link(s.zookeeper.Addr, probeZookeeper)
		if err != nil {
			return nil, err
		}
		h.others = append(h.others, l)
		env = append(env, "SHOP_ZOOKEEPER_HOSTS="+l.addr)
	}
	if s.etcd != nil && slices.Contains(needs, lockstrategy.NeedsEtcd) {
		l, err := s.proxies.link(s.etcd.Addr, probeEtcd)
		if err != nil {
			return nil, err
		}
		h.others = append(h.others, l)
		env = append(env, "SHOP_ETCD_HOSTS="+l.addr)
	}
	return env, nil
}

// connectRedis makes the links to Redis. The servers of a group announce themselves under
// their own addresses, so the shop is told where to connect instead.
func (s *Servers) connectRedis(h *Shop) (url string, dial engine.Detours, _ error) {
	if s.redises == nil {
		l, err := s.proxies.link(s.redis.Addr, probeRedis)
		if err != nil {
			return "", nil, err
		}
		h.redis = []*link{l}
		return "redis://" + l.addr, nil, nil
	}
	dial = engine.Detours{}
	for _, server := range append(slices.Clone(s.redises.service.Nodes()), s.redises.service.Watchers()...) {
		l, err := s.proxies.link(server.Addr, probeRedis)
		if err != nil {
			return "", nil, err
		}
		h.redis = append(h.redis, l)
		dial[server.Addr] = l.addr
	}
	return s.redises.service.URL(), dial, nil
}

// databaseURL leads the shop to the database, by a link where there is one in front.
func (s *Servers) databaseURL(h *Shop) (_ string, err error) {
	if s.front == "" {
		return s.db.URL(), nil
	}
	u, err := url.Parse(s.db.URL())
	if err != nil {
		return "", err
	}
	if h.database, err = s.proxies.link(s.front, ""); err != nil {
		return "", err
	}
	u.Host = h.database.addr
	return u.String(), nil
}

// links are all of the shop's links to lock servers.
func (h *Shop) links() []*link {
	return slices.Concat(h.nodes, h.others, h.redis)
}

// record adds a line of the shop's history to the log of the present play.
func (h *Shop) record(line []byte) {
	var e history.Event
	h.mu.Lock()
	defer h.mu.Unlock()
	if json.Unmarshal(line, &e) == nil && h.log != nil {
		h.log.Add(e)
	}
}

// recordTo adds the shop's history to that log from now on; nil drops it.
func (h *Shop) recordTo(log *history.Log) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.log = log
}

// arm stops the buyer when it gets to the point.
func (h *Shop) arm(purchaser string, at failpoint.Point) error {
	_, err := fmt.Fprintln(h.commands, "hold", purchaser, at)
	return err
}

// release lets the buyer go on.
func (h *Shop) release(purchaser string) error {
	_, err := fmt.Fprintln(h.commands, "go", purchaser)
	return err
}

func (h *Shop) kill() error { return h.process.Kill() }

// freeze stops the whole process, thaw lets it run on.
func (h *Shop) freeze() error { return Freeze(h.process) }
func (h *Shop) thaw() error   { return Thaw(h.process) }

// Freeze stops a process by a signal that it cannot ignore, Thaw lets it run on.
func Freeze(p *localserver.Process) error { return p.Signal(sigStop) }

// Thaw undoes Freeze.
func Thaw(p *localserver.Process) error { return p.Signal(sigCont) }

// alive reports whether the shop answers within the timeout.
func (h *Shop) alive(ctx context.Context, timeout time.Duration) bool {
	return h.get(ctx, "/healthz", timeout)
}

// ready waits until the shop and its servers are ready, for that long.
func (h *Shop) ready(ctx context.Context, timeout time.Duration) bool {
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline) && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		if h.get(ctx, "/readyz", 3*time.Second) {
			return true
		}
	}
	return false
}

func (h *Shop) get(ctx context.Context, path string, timeout time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, h.URL+path, nil)
	if err != nil {
		return false
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, response.Body)
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

// buyURL is the request that buys one unit.
func buyURL(shop *Shop, strategy, product, purchaser string) string {
	return shop.URL + "/product/buy?" + url.Values{"lock": {strategy}, "product": {product}, "purchaser": {purchaser}}.Encode()
}

// stop kills the process and cuts its links.
func (h *Shop) stop() {
	h.recordTo(nil)
	if h.process != nil {
		_ = h.process.Kill() // its answers and its history have been read
	}
	if h.commands != nil {
		_ = h.commands.Close()
	}
	if h.database != nil {
		h.database.cut()
	}
	for _, l := range h.links() {
		l.cut()
	}
}
