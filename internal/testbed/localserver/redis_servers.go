package localserver

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/nearest"
)

// A RedisService is what --redis leads to: one server, or several that act as one.
type RedisService interface {
	URL() string // the form that --redis takes

	// Nodes are the servers that have keys, and Watchers those that have none and only
	// watch them. A node that was killed and is started again is empty, and takes part
	// again.
	Nodes() []*Redis
	Watchers() []*Redis
}

// A RedisServer is a RedisService that this room can start: one file, and one line in
// RedisServers.
type RedisServer struct {
	Name  string // as --local-redis and the promises of the catalogue name it
	About string // for a help text
	nodes int
	start func(g *Group, env [][]string) (RedisService, error)
}

// RedisServers are the values of --local-redis.
func RedisServers() []RedisServer {
	return []RedisServer{
		{topology.Single, "one server", 1, startSingle},
		{topology.Sentinel, "a primary, two replicas and three sentinels", 3, startSentinel},
		{topology.Cluster, "three primaries with a replica each", 6, startCluster},
	}
}

// RedisNamed finds one; "" is the single one.
func RedisNamed(name string) (RedisServer, error) {
	for _, r := range RedisServers() {
		if r.Name == name || name == "" {
			return r, nil
		}
	}
	return RedisServer{}, nearest.Unknown("Redis deployment", name, RedisNames(), "")
}

// RedisNames returns the values of --local-redis.
func RedisNames() (names []string) {
	for _, r := range RedisServers() {
		names = append(names, r.Name)
	}
	return names
}

// Nodes is how many servers have keys.
func (r RedisServer) Nodes() int { return r.nodes }

// Start starts the servers side by side. env is more for the environment of each node, as
// NAME=value; nil for nothing. ErrMissing when the machine has not the program.
func (r RedisServer) Start(g *Group, env [][]string) (RedisService, error) {
	if env == nil {
		env = make([][]string, r.nodes)
	}
	return r.start(g, env)
}

// SingleRedis is one server.
type SingleRedis struct{ *Redis }

func startSingle(g *Group, env [][]string) (RedisService, error) {
	r, err := StartRedisWith(g, env[0])
	if err != nil {
		return nil, err
	}
	return SingleRedis{r}, nil
}

// Nodes is RedisService.Nodes.
func (s SingleRedis) Nodes() []*Redis { return []*Redis{s.Redis} }

// Watchers is RedisService.Watchers.
func (SingleRedis) Watchers() []*Redis { return nil }

// ReplicaUser is the user under which the replicas of a sentinel's group and of a cluster
// follow. Who switches it off on a primary, and closes its connections, keeps the
// replicas from what is written from then on.
const ReplicaUser = "replica"

// SentinelUser is the user under which the sentinels watch a node.
const SentinelUser = "sentinel"

// users are the lines of these users in a node's file.
const users = "user " + ReplicaUser + " on >follow +psync +replconf +ping\n" +
	"user " + SentinelUser + " on >watch &* +@all\n"

// replicated are the settings of a node that has replicas or is one. It would wait 5 s for
// other replicas to come. The backlog would be too small for nobody.
func replicated() []string {
	return []string{
		"--appendonly", "no", "--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1",
		"--masteruser", ReplicaUser, "--masterauth", "follow",
		"--replica-announce-ip", "127.0.0.1",
	}
}

// startRedisNodes starts a redis-server for each environment, side by side.
func startRedisNodes(g *Group, env [][]string, config string, settings func(i, port int) ([]string, error)) ([]*Redis, error) {
	nodes := make([]*Redis, len(env))
	var starts errgroup.Group
	for i := range nodes {
		starts.Go(func() (err error) {
			nodes[i], err = startRedisOn(g, env[i], config, func(port int) ([]string, error) { return settings(i, port) })
			return err
		})
	}
	return nodes, starts.Wait()
}

// do sends one command, as an inline command, and returns its answer as it came. An error
// of the server is one.
func (r *Redis) do(command string) (string, error) {
	conn, err := net.DialTimeout("tcp", r.Addr, time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, command+"\r\nPING\r\n"); err != nil { // a sentinel knows no QUIT
		return "", err
	}
	var answer []byte
	for !bytes.HasSuffix(answer, []byte("+PONG\r\n")) {
		more := make([]byte, 1<<14)
		n, err := conn.Read(more)
		if answer = append(answer, more[:n]...); err != nil {
			return "", err
		}
	}
	if text, refused := bytes.CutPrefix(answer, []byte("-")); refused {
		line, _, _ := bytes.Cut(text, []byte("\r\n"))
		return "", fmt.Errorf("%s: %s: %s", r.Addr, command, line)
	}
	return string(answer), nil
}

// await asks until every server answers with that text.
func await(servers []*Redis, command, text string, timeout time.Duration) error {
	deadline := time.Now().Add(timeout)
	for _, r := range servers {
		for {
			answer, err := r.do(command)
			if err == nil && strings.Contains(answer, text) {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("%s did not answer %q with %q within %s: %v; its last words: %s", r.Addr, command, text, timeout, err, r.lastWords())
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	return nil
}
