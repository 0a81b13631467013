package localserver

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// Redis is a running redis-server. Started again after it was killed, it is
// empty, or has what its append-only file has.
type Redis struct{ Server }

// URL is the form that --redis takes.
func (r *Redis) URL() string { return "redis://" + r.Addr }

// StartRedis starts a redis-server without persistence, or valkey-server where
// that is what the machine has. ErrMissing when it has neither.
func StartRedis(g *Group) (*Redis, error) { return startRedis(g, nil, "--appendonly", "no") }

// StartRedisWith is StartRedis with more in its environment, NAME=value.
func StartRedisWith(g *Group, env []string) (*Redis, error) {
	return startRedis(g, env, "--appendonly", "no")
}

// StartDurableRedis is StartRedis with the append-only file on: what a command
// has written is on the disk when it returns.
func StartDurableRedis(g *Group) (*Redis, error) {
	return startRedis(g, nil, "--appendonly", "yes", "--appendfsync", "always")
}

func startRedis(g *Group, env []string, persistence ...string) (*Redis, error) {
	return startRedisOn(g, env, "", func(int) ([]string, error) { return persistence, nil })
}

// startRedisOn starts a redis-server on a free port, with settings that may follow from it.
// What config says it may change itself: it has that in a file.
func startRedisOn(g *Group, env []string, config string, settings func(port int) ([]string, error)) (*Redis, error) {
	path, err := program("apt-get install redis-server, or brew install redis", "redis-server", "valkey-server")
	if err != nil {
		return nil, err
	}
	in, err := g.newFolder("redis", nil)
	if err != nil {
		return nil, err
	}
	if err := in.write("redis.conf", config); err != nil {
		return nil, err
	}
	return onFreePort(g, func(port int) (*Redis, error) {
		more, err := settings(port)
		if err != nil {
			return nil, err
		}
		r := &Redis{newServer(g, "redis-server", in, port)}
		r.env, r.startTimeout, r.probe = env, 30*time.Second, r.ping
		r.command = append([]string{
			path, in.file("redis.conf"), "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", in.path,
			"--save", "", "--daemonize", "no", "--databases", "1024",
		}, more...)
		return r, r.Start()
	})
}

// ping asks for the process id, by inline commands, so that this room needs no
// client: a server that answers on this port may be somebody else's. One that
// reads its append-only file answers too, and takes no commands yet.
func (r *Redis) ping() error {
	conn, err := net.DialTimeout("tcp", r.Addr, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("INFO server\r\nINFO persistence\r\nQUIT\r\n")); err != nil {
		return err
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		return err
	}
	if own := fmt.Sprintf("\r\nprocess_id:%d\r\n", r.cmd.Process.Pid); !strings.Contains(string(answer), own) {
		return fmt.Errorf("another server answers on %s", r.Addr)
	}
	if !strings.Contains(string(answer), "\r\nloading:0\r\n") {
		return fmt.Errorf("the server on %s is reading its data", r.Addr)
	}
	return nil
}
