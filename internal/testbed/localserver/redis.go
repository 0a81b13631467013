package localserver

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// Redis is a running redis-server. After a kill and a restart it has the data of its append-only file, or none
// if it has no such file.
type Redis struct{ Server }

// URL returns the value for --redis.
func (r *Redis) URL() string { return "redis://" + r.Addr }

// StartRedis starts a redis-server without persistence, or valkey-server if only that is installed. It
// returns ErrMissing if neither is.
func StartRedis(g *Group) (*Redis, error) { return startRedis(g, nil, "--appendonly", "no") }

// StartRedisWith is StartRedis with additional environment variables, NAME=value.
func StartRedisWith(g *Group, env []string) (*Redis, error) {
	return startRedis(g, env, "--appendonly", "no")
}

// StartDurableRedis is StartRedis with an append-only file. The data of a command is on the disk when the
// command returns.
func StartDurableRedis(g *Group) (*Redis, error) {
	return startRedis(g, nil, "--appendonly", "yes", "--appendfsync", "always")
}

func startRedis(g *Group, env []string, persistence ...string) (*Redis, error) {
	return startRedisOn(g, env, "", func(int) ([]string, error) { return persistence, nil })
}

const getRedis = "apt-get install redis-server, or brew install redis"

// startRedisOn starts a redis-server on a free port. `settings` returns arguments for that port. `config` is
// the content of a configuration file that the server may rewrite.
func startRedisOn(g *Group, env []string, config string, settings func(port int) ([]string, error)) (*Redis, error) {
	path, err := Program("redis")
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

// ping asks for the process id, since another server may answer on this port. It uses inline commands, so that this
// package needs no client. A server that still reads its append-only file answers, but accepts no commands.
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
