//go:build !linux

package process

import "errors"

// Keep does nothing here.
func Keep() {}

// A Space is a network of its own.
type Space struct{}

// NewSpace fails here.
func NewSpace() (*Space, error) {
	return nil, errors.New("exploring a program needs Linux: network namespaces and /proc")
}
