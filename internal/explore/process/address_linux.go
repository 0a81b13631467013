package process

import (
	"errors"
	"fmt"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// loopbackIndex is the number of the interface lo in every network namespace (LOOPBACK_IFINDEX in
// linux/if.h of the kernel sources).
const loopbackIndex = 1

// addAddress adds an address to this network's loopback interface, in addition to 127.0.0.1 (netdevice(7),
// ipv6(7)).
func addAddress(text string) error {
	a, err := netip.ParseAddr(text)
	if err != nil {
		return err
	}
	if a.Is6() {
		return addIPv6(a)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	bytes := a.As4()
	for _, step := range []struct {
		request uint
		value   []byte
	}{{unix.SIOCSIFADDR, bytes[:]}, {unix.SIOCSIFNETMASK, []byte{255, 255, 255, 255}}} {
		alias, err := unix.NewIfreq(fmt.Sprintf("lo:%x", bytes))
		if err == nil {
			err = alias.SetInet4Addr(step.value)
		}
		if err == nil {
			err = unix.IoctlIfreq(fd, step.request, alias)
		}
		if err != nil {
			return fmt.Errorf("address %s: %w", text, err)
		}
	}
	return nil
}

// addIPv6 adds an IPv6 address. It passes a struct in6_ifreq to the kernel (linux/ipv6.h).
func addIPv6(a netip.Addr) error {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request := struct {
		address [16]byte
		prefix  uint32
		index   int32
	}{a.As16(), 128, loopbackIndex}
	// #nosec G103 -- x/sys has no way to set an address; the variable lives until the call returns
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFADDR, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return fmt.Errorf("address %s: %w", a, errno)
	}
	// At first the address is tentative, and cannot be bound (RFC 4862, section 5.4).
	for deadline := time.Now().Add(usable); ; time.Sleep(time.Millisecond) {
		err := unix.Bind(fd, &unix.SockaddrInet6{Addr: a.As16()})
		if err == nil || !errors.Is(err, unix.EADDRNOTAVAIL) || time.Now().After(deadline) {
			return err
		}
	}
}

// usable is the maximum time until a new address can be bound. The kernel prepares the address in the background.
const usable = 10 * time.Second
