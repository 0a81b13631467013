package process

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Of sock_diag(7): struct inet_diag_req_v2 and struct inet_diag_msg.
const (
	sockDiagByFamily = 20
	tcpListen        = 10
	diagRequest      = 56
	diagMessage      = 72
)

// errNoDiag is a kernel that has no such sockets, or no module for them.
var errNoDiag = errors.New("the kernel does not answer sock_diag(7)")

// diagSocket asks the kernel about the network that it was made in.
func diagSocket() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, fmt.Errorf("sock_diag(7): %w", err)
	}
	limit := unix.NsecToTimeval(int64(time.Second))
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit)
	return os.NewFile(uintptr(fd), "sock_diag"), nil
}

// diagnose is the listeners of a family. It takes microseconds where /proc/net/tcp takes
// milliseconds: that walks a table of all connections.
func diagnose(fd int, family byte) (all []listener, err error) {
	request := make([]byte, unix.NLMSG_HDRLEN+diagRequest)
	order := binary.NativeEndian
	order.PutUint32(request, uint32(len(request)))
	order.PutUint16(request[4:], sockDiagByFamily)
	order.PutUint16(request[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	request[16], request[17] = family, unix.IPPROTO_TCP
	order.PutUint32(request[20:], 1<<tcpListen)
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	answer := make([]byte, 32<<10)
	for {
		n, _, err := unix.Recvfrom(fd, answer, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for b := answer[:n]; len(b) >= unix.NLMSG_HDRLEN; {
			size := int(order.Uint32(b))
			if size < unix.NLMSG_HDRLEN || size > len(b) {
				return nil, errNoDiag
			}
			body := b[unix.NLMSG_HDRLEN:size]
			switch order.Uint16(b[4:]) {
			case unix.NLMSG_DONE:
				return all, nil
			case sockDiagByFamily:
				if len(body) < diagMessage {
					return nil, errNoDiag
				}
				all = append(all, diagListener(body))
			default:
				return nil, errNoDiag
			}
			b = b[min(len(b), (size+3)&^3):]
		}
	}
}

func diagListener(b []byte) listener {
	host := netip.AddrFrom4([4]byte(b[8:12]))
	if b[0] == unix.AF_INET6 {
		host = netip.AddrFrom16([16]byte(b[8:24])).Unmap()
	}
	return listener{
		at:      netip.AddrPortFrom(host, binary.BigEndian.Uint16(b[4:])),
		backlog: int(binary.NativeEndian.Uint32(b[56:])),
		inode:   strconv.Itoa(int(binary.NativeEndian.Uint32(b[68:]))),
	}
}
