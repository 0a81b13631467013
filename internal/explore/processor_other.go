//go:build !linux

package explore

func bind() (unbind func()) { return func() {} }
