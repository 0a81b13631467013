package localserver

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/nearest"
)

// A RedisService is a target of --redis: one server, or several that act as one.
type RedisService interface {
	URL() string // value for --redis

	// Nodes returns the servers with keys. Watchers returns those that only watch them, the sentinels. After a
	// kill and a restart, a node is empty and belongs to the service again.
	Nodes() []*Redis
	Watchers() []*Redis
}

// A RedisServer is a kind of RedisService that this package can start. Each kind has its own file, and a line
// in the function RedisServers.
type RedisServer struct {
	Name  string // name for --local-redis and in the catalogue of strategies
	About string // text for the help
	nodes int
	start func(g *Group, env [][]string) (RedisService, error)
}

// RedisServers returns the values of --local-redis.
func RedisServers() []RedisServer {
	return []RedisServer{
		{topology.Single, "one server", 1, startSingle},
		{topology.Sentinel, "a primary, two replicas and three sentinels", 3, startSentinel},
		{topology.Cluster, "three primaries with a replica each", 6, startCluster},
	}
}

// RedisNamed returns a kind by name. "" is a single server.
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

// Nodes returns the number of servers with keys.
func (r RedisServer) Nodes() int { return r.nodes }

// Start starts the servers in parallel. `env` contains additional environment variables of each node,
// NAME=value; it may be nil. Start returns ErrMissing if the program is not installed.
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

// Nodes implements RedisService.
func (s SingleRedis) Nodes() []*Redis { return []*Redis{s.Redis} }

// Watchers implements RedisService.
func (SingleRedis) Watchers() []*Redis { return nil }

// ReplicaUser is the user with which replicas connect to their primary. A test can disable it on a primary and
// close its connections; then the replicas receive no later writes.
const ReplicaUser = "replica"

// SentinelUser is the user with which the sentinels connect to each node.
const SentinelUser = "sentinel"

// users defines ReplicaUser and SentinelUser in a node's configuration file.
const users = "user " + ReplicaUser + " on >follow +psync +replconf +ping\n" +
	"user " + SentinelUser + " on >watch &* +@all\n"

// replicated returns the settings of a primary or a replica. By default a primary waits 5 s for further
// replicas before it sends its data.
func replicated() []string {
	return []string{
		"--appendonly", "no", "--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1",
		"--masteruser", ReplicaUser, "--masterauth", "follow",
		"--replica-announce-ip", "127.0.0.1",
	}
}

func startRedisNodes(g *Group, env [][]string, config string, settings func(i, port int) ([]string, error)) ([]*Redis, error) {
	return startAll(len(env), func(i int) (*Redis, error) {
		return startRedisOn(g, env[i], config, func(port int) ([]string, error) { return settings(i, port) })
	})
}

// do sends one inline command and returns the unparsed answer. It returns an error if the server answers with
// an error.
func (r *Redis) do(command string) (string, error) {
	conn, err := net.DialTimeout("tcp", r.Addr, time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, command+"\r\nPING\r\n"); err != nil { // a sentinel does not know QUIT
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

// await repeats a command until the answer of every server contains the text.
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
