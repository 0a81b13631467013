//go:build !linux

package process

import "errors"

// Keep does nothing here.
func Keep() {}

// A Network is a network namespace, which this system lacks.
type Network struct{}

// NewNetwork always fails.
func NewNetwork() (*Network, error) {
	return nil, errors.New("exploring a program needs Linux: network namespaces and /proc")
}

// Close does nothing here.
func (*Network) Close() error { return nil }
