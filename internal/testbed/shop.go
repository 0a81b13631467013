// Package testbed starts, stops, kills, freezes and restarts the shops under test, each behind
// links to its servers. The servers are those of localserver.
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

// A Shop is a child process that serves a shop. It can be killed and started again, and then
// has a new process and, after Start, a new address. Several goroutines may use it.
type Shop struct {
	Links Links // to its lock servers; nil where nothing is between

	group   *localserver.Group
	servers engine.Config
	command func(addr string) *exec.Cmd
	record  func(line []byte)

	mu      sync.Mutex
	process *localserver.Process
	url     string
	stdin   *os.File // nil unless the process takes commands
}

// anyPort is an address for a process that chooses its own port.
const anyPort = "127.0.0.1:0"

// StartShop starts a process of a group and returns when it serves. command makes its command
// line, which is to serve at addr. The process reads in its environment where its servers are:
// their URLs hold passwords, and other users of the machine can read a command line. If record
// is not nil, the process takes the commands of Tell, and record gets each further line of its
// output, in a goroutine of its own.
func StartShop(ctx context.Context, g *localserver.Group, servers engine.Config, command func(addr string) *exec.Cmd, record func(line []byte)) (*Shop, error) {
	s := &Shop{group: g, servers: servers, command: command, record: record}
	if err := s.Start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Start starts another process in the place of one that has ended, at an address of its own.
func (s *Shop) Start(ctx context.Context) error { return s.start(ctx, anyPort) }

// StartAgain is Start at the last address, for clients that know no other.
func (s *Shop) StartAgain(ctx context.Context) error {
	return s.start(ctx, strings.TrimPrefix(s.URL(), "http://"))
}

func (s *Shop) start(ctx context.Context, addr string) error {
	cmd := s.command(addr)
	cmd.Env = slices.Concat(os.Environ(), cmd.Env, s.servers.Environ())
	var stdin *os.File
	if s.record != nil {
		out, in, err := os.Pipe()
		if err != nil {
			return err
		}
		defer out.Close() // the child has its own
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
		_ = s.stdin.Close() // of the process that has ended
	}
	s.process, s.url, s.stdin = process, url, stdin
	return nil
}

// listen starts cmd and waits for the line by which it says where it serves. Further lines go
// to record, unless it is nil.
func listen(ctx context.Context, g *localserver.Group, cmd *exec.Cmd, record func(line []byte)) (_ *localserver.Process, url string, _ error) {
	out, in, err := os.Pipe()
	if err != nil {
		return nil, "", err
	}
	cmd.Stdout = in
	process, err := g.Start(cmd)
	_ = in.Close() // the child has its own
	if err != nil {
		return nil, "", errors.Join(err, out.Close())
	}
	first := make(chan string, 1)
	go func() {
		defer out.Close()
		lines := bufio.NewReader(out)
		line, err := lines.ReadBytes('\n') // none when the child ended without one
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
func (s *Shop) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.url
}

// current returns the present process, or the last one.
func (s *Shop) current() *localserver.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// Kill ends the process with SIGKILL and returns when it has ended.
func (s *Shop) Kill() error { return s.current().Kill() }

// Stop ends the process with SIGTERM. It is an error if the process does not end by itself
// within the timeout, or ends with another exit code than 0.
func (s *Shop) Stop(timeout time.Duration) error {
	err := s.current().Stop(timeout)
	s.hangUp()
	return err
}

// Discard kills the process, whose work is done.
func (s *Shop) Discard() {
	_ = s.Kill() // its answers have been read
	s.hangUp()
}

func (s *Shop) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stdin != nil {
		_ = s.stdin.Close()
	}
	s.stdin = nil
}

// Freeze stops the whole process by a signal that it cannot ignore.
func (s *Shop) Freeze() error { return s.current().Freeze() }

// Thaw lets a frozen process run on.
func (s *Shop) Thaw() error { return s.current().Thaw() }

// Tell sends a command to the process, see internal/fault/failpoint.
func (s *Shop) Tell(command string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stdin == nil {
		return errors.New("the shop takes no commands")
	}
	_, err := fmt.Fprintln(s.stdin, command)
	return err
}

// Ended reports whether the process has ended.
func (s *Shop) Ended() bool {
	select {
	case <-s.current().Done():
		return true
	default:
		return false
	}
}

// Answers reports whether the process answers within the timeout.
func (s *Shop) Answers(ctx context.Context, timeout time.Duration) bool {
	return isOK(ctx, s.URL()+"/healthz", timeout)
}

// Ready waits until the shop and its servers are ready. It reports false after the timeout.
func (s *Shop) Ready(ctx context.Context, timeout time.Duration) bool {
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline) && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		if isOK(ctx, s.URL()+"/readyz", 3*time.Second) {
			return true
		}
	}
	return false
}

// isOK asks over a connection of its own.
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
