package localserver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// A Server is a child that listens on one port. After a kill it can be restarted on the same port, with
// the data in its folder.
type Server struct {
	*Process
	Addr string // host:port

	name                string
	group               *Group
	command             []string
	env                 []string      // added to the variables of this process
	in                  folder        // folder with the server's data and log
	childrenOwnSessions bool          // each of its children has its own session
	startTimeout        time.Duration // maximum time until it serves
	probe               func() error  // checks the server; returns nil when it serves
}

func newServer(g *Group, name string, in folder, port int) Server {
	return Server{Addr: loopback(port), name: name, group: g, in: in, startTimeout: time.Minute}
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func (s *Server) lastWords() string { return lastWords(s.in.file("log")) }

// Start starts or restarts the server, and returns when it serves.
func (s *Server) Start() error {
	log, err := os.OpenFile(s.in.file("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own copy
	cmd := exec.Command(s.command[0], s.command[1:]...)
	cmd.Env = append(os.Environ(), s.env...)
	cmd.Stdout, cmd.Stderr = log, log
	s.in.user.run(cmd, s.in.path)
	if s.Process, err = s.group.Start(cmd); err != nil {
		return err
	}
	s.Process.childrenOwnSessions = s.childrenOwnSessions
	return s.ready()
}

// Address returns the server's address, host:port.
func (s *Server) Address() string { return s.Addr }

// ready waits until the server serves. It returns an error if the process ends or startTimeout is over.
func (s *Server) ready() error {
	deadline := time.After(s.startTimeout)
	for {
		err := s.probe()
		if err == nil {
			return nil
		}
		select {
		case <-s.done:
			words := s.lastWords()
			err := fmt.Errorf("%s ended while starting (%v); its last words: %s", s.name, s.err, words)
			if strings.Contains(strings.ToLower(words), "address already in use") {
				err = fmt.Errorf("%w: %w", errPortTaken, err)
			}
			return err
		case <-deadline:
			return fmt.Errorf("%s did not answer within %s: %w; its last words: %s", s.name, s.startTimeout, err, s.lastWords())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// lastWords says in one line why a program ended: the last three errors in its log, or without errors its last
// three lines. It does not name the log, which is removed with the group.
func lastWords(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return "none"
	}
	said, _, _ := strings.Cut(string(text), "Examine the logs in") // removes 25 lines of advice by mariadb-install-db
	var lines, failures []string
	for line := range strings.Lines(said) {
		line = strings.Join(strings.Fields(line), " ")
		switch {
		case line == "", strings.HasSuffix(line, "[ERROR] Aborting"), strings.Contains(line, "Exiting JVM with code"): // these lines give no reason
		case strings.Contains(line, "ERROR"), strings.Contains(line, "FATAL"), strings.Contains(line, "Exception:"): // these lines give a reason, the last kind in ZooKeeper's log
			failures = append(failures, line)
		default:
			lines = append(lines, line)
		}
	}
	if len(failures) > 0 {
		lines = failures
	}
	words := strings.Join(lines[max(0, len(lines)-3):], "; ")
	return words[max(0, len(words)-600):]
}

var errPortTaken = errors.New("the port that was free is taken")

// onFreePort starts a server on a free port and reserves the port for the group. If another process takes the
// port first, onFreePort tries another one.
func onFreePort[Server any](g *Group, start func(port int) (Server, error)) (Server, error) {
	return onFreePorts(g, 1, func(ports []int) (Server, error) { return start(ports[0]) })
}

func onFreePorts[Server any](g *Group, n int, start func(ports []int) (Server, error)) (Server, error) {
	for tries := 1; ; tries++ {
		ports := make([]int, n)
		for i := range ports {
			var err error
			if ports[i], err = g.port(); err != nil {
				var none Server
				return none, err
			}
		}
		server, err := start(ports)
		if tries == 3 || !errors.Is(err, errPortTaken) {
			return server, err
		}
	}
}

// FreePort returns a free loopback port below the range from which the kernel takes the ports of clients. That
// range begins at 32768 on Linux (ip(7), ip_local_port_range) and at 49152 elsewhere (RFC 6335). In that
// range, a client could take the port of a server that is down. A client that connects to such a port may even
// get this same port as its own, and connect to itself.
func FreePort() (int, error) {
	port, reserved, err := freePort()
	if err != nil {
		return 0, err
	}
	return port, reserved.Close()
}

// freePort returns a port that no other group of this machine uses. Each group keeps a UDP socket open on each
// of its ports, even while its servers are down. No server here uses UDP. The kernel closes the socket when
// the process ends, also after a SIGKILL.
func freePort() (int, net.PacketConn, error) {
	for tries := 1; ; tries++ {
		port := 15_000 + rand.IntN(17_000)
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		reserved, err := net.ListenPacket("udp", address)
		if err == nil {
			var l net.Listener
			if l, err = net.Listen("tcp", address); err == nil {
				return port, reserved, l.Close()
			}
			_ = reserved.Close()
		}
		if tries == 100 {
			return 0, nil, err
		}
	}
}

// port returns a free port, which belongs to the group until it is closed.
func (g *Group) port() (int, error) {
	port, reserved, err := freePort()
	if err != nil {
		return 0, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reservedPorts = append(g.reservedPorts, reserved)
	return port, nil
}
