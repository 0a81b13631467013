//go:build !linux

package run

func newNap() *nap { return plainNap() }
