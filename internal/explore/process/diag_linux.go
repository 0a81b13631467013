package process

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Constants of sock_diag(7): struct inet_diag_req_v2 and struct inet_diag_msg.
const (
	sockDiagByFamily = 20
	tcpListen        = 10
	diagRequest      = 56
	diagMessage      = 72
)

// errNoDiag reports that the kernel does not support sock_diag(7), or lacks a module for it.
var errNoDiag = errors.New("the kernel does not answer sock_diag(7)")

// diagSocket opens a socket for queries about the network in which it was opened.
func diagSocket() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, fmt.Errorf("sock_diag(7): %w", err)
	}
	limit := unix.NsecToTimeval(int64(time.Second))
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit)
	return os.NewFile(uintptr(fd), "sock_diag"), nil
}

// diagnose returns the listeners of an address family. It takes microseconds. Reading /proc/net/tcp would take
// milliseconds, since the kernel then walks a table of all connections.
func diagnose(fd int, family byte) (all []listener, err error) {
	if err := diagAsk(fd, unix.NLM_F_DUMP, [diagRequest]byte{}, family, 1<<tcpListen); err != nil {
		return nil, err
	}
	answer := make([]byte, 32<<10)
	for {
		messages, err := diagReceive(fd, answer)
		if err != nil {
			return nil, err
		}
		for _, m := range messages {
			switch {
			case m.Header.Type == unix.NLMSG_DONE:
				return all, nil
			case m.Header.Type != sockDiagByFamily || len(m.Data) < diagMessage:
				return nil, errNoDiag
			}
			all = append(all, diagListener(m.Data))
		}
	}
}

// diagAsk completes the request in `body` and sends it.
func diagAsk(fd int, flags uint16, body [diagRequest]byte, family byte, states uint32) error {
	order := binary.NativeEndian
	body[0], body[1] = family, unix.IPPROTO_TCP
	order.PutUint32(body[4:], states)
	request := order.AppendUint32(nil, unix.NLMSG_HDRLEN+diagRequest)
	request = order.AppendUint16(request, sockDiagByFamily)
	request = order.AppendUint16(request, unix.NLM_F_REQUEST|flags)
	request = append(request, make([]byte, 8)...) // sequence number and sender, which the kernel fills in
	return unix.Sendto(fd, append(request, body[:]...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
}

// diagReceive returns the messages of one read. They share the buffer `into`.
func diagReceive(fd int, into []byte) ([]syscall.NetlinkMessage, error) {
	for {
		n, _, err := unix.Recvfrom(fd, into, 0)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, err
		}
		return syscall.ParseNetlinkMessage(into[:n])
	}
}

// diagUnacknowledged returns how many bytes one end of a connection (`from`) has sent that the kernel of the other end
// (`to`) has not received. It returns 0 for a closed socket.
func diagUnacknowledged(fd int, from, to netip.AddrPort) (int, error) {
	b, err := diagSocketAt(fd, from, to, 0)
	if err != nil || b == nil {
		return 0, err
	}
	return int(binary.NativeEndian.Uint32(b[60:])), nil
}

// diagInfo is the number of the attribute INET_DIAG_INFO. bytesReceived is the offset of tcpi_bytes_received in
// struct tcp_info.
const diagInfo, bytesReceived = 2, 128

// diagReceived returns how many bytes one end of a connection (`from`) has received from the other end (`to`). It
// returns 0 for a closed socket, or if the kernel does not report the number.
func diagReceived(fd int, from, to netip.AddrPort) (int64, error) {
	b, err := diagSocketAt(fd, from, to, 1<<(diagInfo-1))
	if err != nil || b == nil {
		return 0, err
	}
	order := binary.NativeEndian
	for b = b[diagMessage:]; len(b) >= 4; {
		size := int(order.Uint16(b))
		if size < 4 || size > len(b) {
			break
		}
		if order.Uint16(b[2:]) == diagInfo && size >= 4+bytesReceived+8 {
			return int64(order.Uint64(b[4+bytesReceived:])), nil
		}
		b = b[min(len(b), (size+3)&^3):]
	}
	return 0, nil
}

// diagSocketAt returns the kernel's message about one end of a connection (`from`); nil if that end is closed. The
// parameter `to` is the other end.
func diagSocketAt(fd int, from, to netip.AddrPort, extensions byte) ([]byte, error) {
	var body [diagRequest]byte
	body[2] = extensions
	family := byte(unix.AF_INET)
	if from.Addr().Is6() {
		family = unix.AF_INET6
	}
	binary.BigEndian.PutUint16(body[8:], from.Port())
	binary.BigEndian.PutUint16(body[10:], to.Port())
	copy(body[12:28], from.Addr().AsSlice())
	copy(body[28:44], to.Addr().AsSlice())
	binary.NativeEndian.PutUint64(body[48:], 1<<64-1) // INET_DIAG_NOCOOKIE, twice
	if err := diagAsk(fd, 0, body, family, 1<<32-1); err != nil {
		return nil, err
	}
	messages, err := diagReceive(fd, make([]byte, 4096))
	if err != nil {
		return nil, err
	}
	if len(messages) == 0 {
		return nil, errNoDiag
	}
	m := messages[0]
	switch {
	case m.Header.Type == sockDiagByFamily && len(m.Data) >= diagMessage:
		return m.Data, nil
	case m.Header.Type == unix.NLMSG_ERROR && len(m.Data) >= 4 && -int32(binary.NativeEndian.Uint32(m.Data)) == int32(unix.ENOENT):
		return nil, nil
	}
	return nil, errNoDiag
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
