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

// A Server is a child that listens on one port, and can be started again after
// it was killed: there, and with what is left in its folder.
type Server struct {
	*Process
	Addr string // host:port

	name         string // for messages
	group        *Group
	command      []string
	env          []string      // beside this process's own
	in           folder        // with its log
	sessions     bool          // its children have sessions of their own
	startTimeout time.Duration // until it must answer
	probe        func() error  // nil once it serves
}

func newServer(g *Group, name string, in folder, port int) Server {
	return Server{Addr: loopback(port), name: name, group: g, in: in, startTimeout: time.Minute}
}

// loopback is a port of this machine.
func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// lastWords are those of its log.
func (s *Server) lastWords() string { return lastWords(s.in.file("log")) }

// Start starts the server, for the first time or again, and returns when it
// serves.
func (s *Server) Start() error {
	log, err := os.OpenFile(s.in.file("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own
	cmd := exec.Command(s.command[0], s.command[1:]...)
	cmd.Env = append(os.Environ(), s.env...)
	cmd.Stdout, cmd.Stderr = log, log
	s.in.user.run(cmd, s.in.path)
	if s.Process, err = s.group.Start(cmd); err != nil {
		return err
	}
	s.Process.sessions = s.sessions
	return s.ready()
}

// Address is where it listens, host:port.
func (s *Server) Address() string { return s.Addr }

// ready asks until the server serves, the process ends or the start timeout is over.
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

// lastWords returns why a log's writer ended, in one line: its last three
// errors, or its last three lines when it does not call anything an error. It
// does not name the log, which goes with the group.
func lastWords(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return "none"
	}
	said, _, _ := strings.Cut(string(text), "Examine the logs in") // mariadb-install-db's advice, 25 lines
	var lines, failures []string
	for line := range strings.Lines(said) {
		line = strings.Join(strings.Fields(line), " ")
		switch {
		case line == "", strings.HasSuffix(line, "[ERROR] Aborting"), strings.Contains(line, "Exiting JVM with code"): // no reason
		case strings.Contains(line, "ERROR"), strings.Contains(line, "FATAL"), strings.Contains(line, "Exception:"): // ZooKeeper's reason
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

// errPortTaken: another process was faster than the server.
var errPortTaken = errors.New("the port that was free is taken")

// onFreePort starts a server on a port that is free now, and the group's from then on.
// Another process may take it before the server does, and then it is tried with
// another port.
func onFreePort[Server any](g *Group, start func(port int) (Server, error)) (Server, error) {
	for tries := 1; ; tries++ {
		port, err := g.port()
		if err != nil {
			var none Server
			return none, err
		}
		server, err := start(port)
		if tries == 3 || !errors.Is(err, errPortTaken) {
			return server, err
		}
	}
}

// FreePort finds a loopback port that is free now, below those that the kernel
// gives to clients: from 32768 on Linux (ip(7), ip_local_port_range), from 49152
// elsewhere (RFC 6335). A client may take one of those while its server is
// killed and is to come back on it. It may even be the server's own client: who
// connects to a port of that range where nobody listens can be given that very
// port, and is connected to itself.
func FreePort() (int, error) {
	port, reserved, err := freePort()
	if err != nil {
		return 0, err
	}
	return port, reserved.Close()
}

// freePort finds one that no other group of this machine has either: its servers may
// be down, and come back on it. A group keeps a UDP socket on each of its ports, which
// no server here uses, and which the kernel closes however the process ends.
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

// port is a free one, and the group's until it is closed.
func (g *Group) port() (int, error) {
	port, reserved, err := freePort()
	if err != nil {
		return 0, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ports = append(g.ports, reserved)
	return port, nil
}
