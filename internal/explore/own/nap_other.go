//go:build !linux

package own

func newNap() *nap { return plainNap() }
