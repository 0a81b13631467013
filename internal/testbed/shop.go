// Package testbed starts, stops, kills, freezes and restarts the shops under test. Each shop reaches its
// servers through links: proxies that can cut and delay connections. Package localserver starts the servers.
package testbed

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// A ShopProcess is a child process that serves a shop. After a kill it can be restarted as a new process; Start
// gives it a new address. A ShopProcess is safe for concurrent use.
type ShopProcess struct {
	Links Links // links to its lock servers; nil if it connects directly

	group   *localserver.Group
	servers engine.Config
	command func(addr string) *exec.Cmd
	record  func(line []byte)

	mu      sync.Mutex
	process *localserver.Process
	url     string
	stdin   *os.File // nil unless the process accepts commands
}

// anyPort is an address for a process that chooses its own port.
const anyPort = "127.0.0.1:0"

// StartShop starts a process of a group and returns when it serves. `command` returns its command line, which
// must serve at addr. The environment contains the URLs of the servers, since other users can read a command
// line and URLs contain passwords. If `record` is not nil, the process accepts the commands of Tell. StartShop
// then passes each further line of its output to `record`, in another goroutine.
func StartShop(ctx context.Context, g *localserver.Group, servers engine.Config, command func(addr string) *exec.Cmd, record func(line []byte)) (*ShopProcess, error) {
	s := &ShopProcess{group: g, servers: servers, command: command, record: record}
	if err := s.Start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Start starts the successor of an ended process, at a new address.
func (s *ShopProcess) Start(ctx context.Context) error { return s.start(ctx, anyPort) }

// StartAgain is Start, but at the last address, for clients that know only that address.
func (s *ShopProcess) StartAgain(ctx context.Context) error {
	return s.start(ctx, strings.TrimPrefix(s.URL(), "http://"))
}

func (s *ShopProcess) start(ctx context.Context, addr string) error {
	cmd := s.command(addr)
	cmd.Env = slices.Concat(os.Environ(), cmd.Env, s.servers.Environ())
	var stdin *os.File
	if s.record != nil {
		out, in, err := os.Pipe()
		if err != nil {
			return err
		}
		defer out.Close() // the child has its own copy
		cmd.Stdin, stdin = out, in
	}
	process, url, err := listen(ctx, s.group, cmd, s.record)
	if err != nil {
		if stdin != nil {
			_ = stdin.Close()
		}
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stdin != nil {
		_ = s.stdin.Close() // the pipe to the ended process
	}
	s.process, s.url, s.stdin = process, url, stdin
	return nil
}

// listen starts cmd and waits for the line with its address. Further lines go to `record`, unless it is nil.
func listen(ctx context.Context, g *localserver.Group, cmd *exec.Cmd, record func(line []byte)) (_ *localserver.Process, url string, _ error) {
	out, in, err := os.Pipe()
	if err != nil {
		return nil, "", err
	}
	cmd.Stdout = in
	process, err := g.Start(cmd)
	_ = in.Close() // the child has its own copy
	if err != nil {
		return nil, "", errors.Join(err, out.Close())
	}
	first := make(chan string, 1)
	go func() {
		defer out.Close()
		lines := bufio.NewReader(out)
		line, err := lines.ReadBytes('\n') // empty if the child ended without a line
		first <- strings.TrimSpace(string(line))
		for err == nil {
			if line, err = lines.ReadBytes('\n'); err == nil && record != nil {
				record(line)
			}
		}
	}()
	select {
	case line := <-first:
		if url, ok := strings.CutPrefix(line, localserver.Listening); ok {
			return process, url, nil
		}
		err = fmt.Errorf("a shop process did not start: %q", line)
	case <-time.After(time.Minute):
		err = errors.New("a shop process did not serve within a minute")
	case <-ctx.Done():
		err = ctx.Err()
	}
	return nil, "", errors.Join(err, process.Kill())
}

// URL returns the address of the present process.
func (s *ShopProcess) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.url
}

// current returns the process that runs or, if none runs, the last one.
func (s *ShopProcess) current() *localserver.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// Kill ends the process with SIGKILL and returns when it has ended.
func (s *ShopProcess) Kill() error { return s.current().Kill() }

// Stop ends the process with SIGTERM. It returns an error if the process does not end within the timeout,
// or ends with an exit code other than 0.
func (s *ShopProcess) Stop(timeout time.Duration) error {
	err := s.current().Stop(timeout)
	s.hangUp()
	return err
}

// Discard kills a process that is no longer needed.
func (s *ShopProcess) Discard() {
	_ = s.Kill() // an error does not matter any more
	s.hangUp()
}

func (s *ShopProcess) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stdin != nil {
		_ = s.stdin.Close()
	}
	s.stdin = nil
}

// Freeze stops the whole process with a signal that it cannot ignore.
func (s *ShopProcess) Freeze() error { return s.current().Freeze() }

// Thaw lets a frozen process continue.
func (s *ShopProcess) Thaw() error { return s.current().Thaw() }

// Tell sends a command to the process. Package failpoint describes the commands, which stop buyers.
func (s *ShopProcess) Tell(command string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stdin == nil {
		return errors.New("the shop takes no commands")
	}
	_, err := fmt.Fprintln(s.stdin, command)
	return err
}

// Ended reports whether the process has ended.
func (s *ShopProcess) Ended() bool {
	select {
	case <-s.current().Done():
		return true
	default:
		return false
	}
}

// Answers reports whether the process answers within the timeout.
func (s *ShopProcess) Answers(ctx context.Context, timeout time.Duration) bool {
	return isOK(ctx, s.URL()+"/healthz", timeout)
}

// Ready waits until the shop and its servers are ready. It returns false after the timeout.
func (s *ShopProcess) Ready(ctx context.Context, timeout time.Duration) bool {
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline) && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		if isOK(ctx, s.URL()+"/readyz", 3*time.Second) {
			return true
		}
	}
	return false
}

// isOK sends a request over a new connection and reports whether the answer is 200.
func isOK(ctx context.Context, url string, timeout time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
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
