//go:build !linux

package process

import "errors"

// Keep does nothing here.
func Keep() {}

// A Space is a network namespace, which this system lacks.
type Space struct{}

// NewSpace always fails.
func NewSpace() (*Space, error) {
	return nil, errors.New("exploring a program needs Linux: network namespaces and /proc")
}

// Close does nothing here.
func (*Space) Close() error { return nil }
