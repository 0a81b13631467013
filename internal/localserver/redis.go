package localserver

import (
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Redis is a running redis-server without persistence.
type Redis struct {
	*Process
	Addr string // host:port

	group   *Group
	command []string
	logFile string
}

// URL is the form that --redis takes.
func (r *Redis) URL() string { return "redis://" + r.Addr }

// StartRedis starts a redis-server, or valkey-server where that is what the
// machine has. ErrMissing when it has neither.
func StartRedis(g *Group) (*Redis, error) {
	path, err := program("apt-get install redis-server, or brew install redis", "redis-server", "valkey-server")
	if err != nil {
		return nil, err
	}
	dir, err := g.Dir("redis")
	if err != nil {
		return nil, err
	}
	return onFreePort(func(port int) (*Redis, error) {
		r := &Redis{
			Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), group: g, logFile: filepath.Join(dir, "redis.log"),
		}
		r.command = []string{
			path, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir, "--logfile", r.logFile,
			"--save", "", "--appendonly", "no", "--daemonize", "no", "--databases", "1024",
		}
		return r, r.Start()
	})
}

// Start starts the server again after it was killed: empty, on the same port.
func (r *Redis) Start() (err error) {
	if r.Process, err = r.group.Start(exec.Command(r.command[0], r.command[1:]...)); err != nil {
		return err
	}
	return r.ready("redis-server", r.logFile, 30*time.Second, r.ping)
}

// ping asks for the process id, by one inline command, so that this room needs
// no client: a server that answers on this port may be somebody else's.
func (r *Redis) ping() error {
	conn, err := net.DialTimeout("tcp", r.Addr, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("INFO server\r\nQUIT\r\n")); err != nil {
		return err
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		return err
	}
	if own := fmt.Sprintf("\r\nprocess_id:%d\r\n", r.cmd.Process.Pid); !strings.Contains(string(answer), own) {
		return fmt.Errorf("another server answers on %s", r.Addr)
	}
	return nil
}
