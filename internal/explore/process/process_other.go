//go:build !linux

package process

import (
	"context"
	"errors"
	"net"
	"time"
)

var errLinux = errors.New("exploring a program needs Linux: network namespaces and /proc")

// Keep does nothing here.
func Keep() {}

// A Space is a network of its own.
type Space struct{}

// NewSpace fails here.
func NewSpace() (*Space, error) { return nil, errLinux }

// Listen fails here.
func (s *Space) Listen(string) (*net.TCPListener, error) { return nil, errLinux }

// Dial fails here.
func (s *Space) Dial(context.Context, string) (*net.TCPConn, error) { return nil, errLinux }

// Listeners fails here.
func (s *Space) Listeners() ([]string, error) { return nil, errLinux }

// Backlog fails here.
func (s *Space) Backlog() (int, error) { return 0, errLinux }

// Unacknowledged fails here.
func (s *Space) Unacknowledged(*net.TCPConn) (int, error) { return 0, errLinux }

// Close does nothing here.
func (s *Space) Close() error { return nil }

// A Program is a process and all that descend from it.
type Program struct{}

// Start fails here.
func Start(*Space, Command) (*Program, error) { return nil, errLinux }

// Attach fails here.
func Attach(int) (*Program, error) { return nil, errLinux }

// Done is never closed: there is no Program here.
func (p *Program) Done() <-chan struct{} { return nil }

// Err fails here.
func (p *Program) Err() error { return errLinux }

// Stop does nothing here.
func (p *Program) Stop() {}

// Refresh fails here.
func (p *Program) Refresh() error { return errLinux }

// Baseline does nothing here.
func (p *Program) Baseline() {}

// Asleep is false: nobody knows.
func (p *Program) Asleep() bool { return false }

// Napping is true: nobody knows.
func (p *Program) Napping(time.Duration) bool { return true }
