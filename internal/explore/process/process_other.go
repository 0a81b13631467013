//go:build !linux

package process

import "errors"

// Keep does nothing: there are no keepers on this system.
func Keep() {}

// A Network is a network namespace. This system does not have them.
type Network struct{}

// NewNetwork always fails.
func NewNetwork() (*Network, error) {
	return nil, errors.New("exploring a program needs Linux: network namespaces and /proc")
}

// Close does nothing.
func (*Network) Close() error { return nil }
