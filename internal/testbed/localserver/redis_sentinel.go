package localserver

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// Times of a group with sentinels. A server is down after a second without an answer, so a failover takes
// two or three seconds. A shorter stall of the machine has no effect.
const (
	sentinels       = 3
	downAfter       = time.Second
	failoverTimeout = 2 * time.Second
)

// PrimaryName is the name under which the sentinels know the primary.
const PrimaryName = "shop"

type sentinelRedis struct{ nodes, sentinels []*Redis }

// startSentinel starts a primary, its replicas, and the sentinels, which are redis-server in another mode. The
// configuration of a sentinel names the others, since discovery by messages takes two seconds. A node's file
// names its primary. When the sentinels change the primary, the node updates its file for the next start.
func startSentinel(g *Group, env [][]string) (RedisService, error) {
	settings := func(int, int) ([]string, error) { return replicated(), nil }
	first, err := startRedisNodes(g, env[:1], users, settings)
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(first[0].Addr)
	if err != nil {
		return nil, err
	}
	replicas, err := startRedisNodes(g, env[1:], users+"replicaof 127.0.0.1 "+port+"\n", settings)
	if err != nil {
		return nil, err
	}
	s := &sentinelRedis{nodes: append(first, replicas...)}
	if err := await(replicas, "INFO replication", "master_link_status:up", 20*time.Second); err != nil {
		return nil, err
	}
	if s.sentinels, err = s.watch(g); err != nil {
		return nil, err
	}
	// Wait until the sentinels know each other and both replicas.
	return s, await(s.sentinels, "INFO sentinel", fmt.Sprintf("status=ok,address=%s,slaves=%d,sentinels=%d", first[0].Addr, len(replicas), sentinels), 20*time.Second)
}

func (s *sentinelRedis) watch(g *Group) ([]*Redis, error) {
	path, err := findProgram(getRedis, "redis-server", "valkey-server", "redis-sentinel")
	if err != nil {
		return nil, err
	}
	var ports [sentinels]int
	for i := range ports {
		if ports[i], err = g.port(); err != nil {
			return nil, err
		}
	}
	return startAll(sentinels, func(i int) (*Redis, error) {
		in, err := g.newFolder("sentinel", nil)
		if err != nil {
			return nil, err
		}
		if err := in.write("sentinel.conf", s.config(in.path, ports[:], i)); err != nil { // the sentinel updates this file
			return nil, err
		}
		r := &Redis{newServer(g, "redis-sentinel", in, ports[i])}
		r.startTimeout, r.probe = 30*time.Second, r.pingSentinel
		r.command = []string{path, in.file("sentinel.conf"), "--sentinel"}
		return r, r.Start()
	})
}

func (s *sentinelRedis) config(dir string, ports []int, number int) string {
	var c strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&c, format+"\n", args...) }
	id := func(i int) string { return fmt.Sprintf("%040x", ports[i]) }
	at := func(address string) string { return strings.Replace(address, ":", " ", 1) }
	line("port %d\nbind 127.0.0.1\ndir %s\nsentinel announce-ip 127.0.0.1\nsentinel myid %s", ports[number], dir, id(number))
	line("sentinel monitor %s %s %d", PrimaryName, at(s.nodes[0].Addr), sentinels/2+1)
	line("sentinel down-after-milliseconds %s %d", PrimaryName, downAfter.Milliseconds())
	line("sentinel failover-timeout %s %d", PrimaryName, failoverTimeout.Milliseconds())
	line("sentinel auth-user %s %s\nsentinel auth-pass %[1]s watch", PrimaryName, SentinelUser)
	line("sentinel parallel-syncs %s %d", PrimaryName, len(s.nodes))
	for _, replica := range s.nodes[1:] {
		line("sentinel known-replica %s %s", PrimaryName, at(replica.Addr))
	}
	for i, port := range ports {
		if i != number {
			line("sentinel known-sentinel %s 127.0.0.1 %s %s", PrimaryName, strconv.Itoa(port), id(i))
		}
	}
	return c.String()
}

// pingSentinel checks that a sentinel answers. Unlike other servers, a sentinel has no data to load.
func (r *Redis) pingSentinel() error {
	answer, err := r.do("INFO server")
	if err == nil && !strings.Contains(answer, fmt.Sprintf("\r\nprocess_id:%d\r\n", r.cmd.Process.Pid)) {
		err = fmt.Errorf("another server answers on %s", r.Addr)
	}
	return err
}

// URL implements RedisService.
func (s *sentinelRedis) URL() string {
	return "redis+sentinel://" + strings.Join(addresses(s.sentinels), ",") + "/" + PrimaryName
}

// Nodes implements RedisService.
func (s *sentinelRedis) Nodes() []*Redis { return s.nodes }

// Watchers implements RedisService.
func (s *sentinelRedis) Watchers() []*Redis { return s.sentinels }

func addresses(servers []*Redis) (all []string) {
	for _, r := range servers {
		all = append(all, r.Addr)
	}
	return all
}
