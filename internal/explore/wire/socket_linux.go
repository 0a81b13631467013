package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

type rawConn = syscall.RawConn

// NewSocket wraps a connection.
func NewSocket(gate Gate, c *net.TCPConn) (*Socket, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	s := &Socket{conn: c, raw: raw, gate: gate}
	_ = raw.Control(func(fd uintptr) { // if this fails, the time of the read stands for the time of arrival
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	})
	s.R = bufio.NewReaderSize(s, 16<<10)
	return s, nil
}

// Read implements io.Reader. It raises Gate.Busy before the bytes leave the kernel.
func (s *Socket) Read(p []byte) (n int, err error) {
	wrong := s.raw.Read(func(fd uintptr) bool {
		took := !s.hot
		if took {
			s.gate.Busy(1)
		}
		for {
			if n, err = s.receive(int(fd), p); !errors.Is(err, unix.EINTR) {
				break
			}
		}
		if errors.Is(err, unix.EAGAIN) {
			if took {
				s.gate.Busy(-1)
			}
			return false
		}
		s.hot = true
		return true
	})
	switch {
	case wrong != nil:
		return 0, wrong
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// receive reads bytes and records when the kernel received them.
func (s *Socket) receive(fd int, p []byte) (n int, err error) {
	var control [64]byte
	n, size, _, _, err := unix.Recvmsg(fd, p, control[:], 0)
	if err != nil || n == 0 {
		return n, err
	}
	s.came = time.Now()
	if size < unix.SizeofCmsghdr { // the kernel starts to record times some time after the call of NewSocket
		return n, nil
	}
	h, data, _, err := unix.ParseOneSocketControlMessage(control[:size])
	if err == nil && h.Level == unix.SOL_SOCKET && h.Type == unix.SO_TIMESTAMPNS && len(data) >= 16 { // struct timespec
		s.came = time.Unix(int64(binary.NativeEndian.Uint64(data)), int64(binary.NativeEndian.Uint64(data[8:])))
	}
	return n, nil
}

// ReadMore appends n bytes of a message to b. It allocates memory as the bytes come, so a false length
// costs nothing. The error is io.EOF if b was empty and nothing came.
func ReadMore(r io.Reader, b []byte, n int) ([]byte, error) {
	for n > 0 {
		step := min(n, max(16<<10, len(b)))
		b = slices.Grow(b, step)
		got, err := io.ReadFull(r, b[len(b):len(b)+step])
		b = b[:len(b)+got]
		if errors.Is(err, io.EOF) && len(b) > 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return b, err
		}
		n -= step
	}
	return b, nil
}

// Write implements io.Writer.
func (s *Socket) Write(p []byte) (int, error) {
	n, err := s.conn.Write(p)
	s.written.Add(int64(n))
	return n, err
}

// Written returns the number of bytes written so far.
func (s *Socket) Written() int64 { return s.written.Load() }

// Warm makes Gate.Busy count the socket until Rest. The goroutine that reads the socket next calls
// Rest.
func (s *Socket) Warm() {
	if !s.hot {
		s.hot = true
		s.gate.Busy(1)
	}
}

// Rest says that all bytes that were read are handled, so Gate.Busy need not count the socket. Only the
// reading goroutine calls it.
func (s *Socket) Rest() {
	if s.hot && s.R.Buffered() == 0 {
		s.hot = false
		s.gate.Busy(-1)
	}
}

// Done calls Rest for a socket that is not read any more.
func (s *Socket) Done() {
	if s.hot {
		s.hot = false
		s.gate.Busy(-1)
	}
}

// Unread returns how many bytes wait in the kernel (SIOCINQ, tcp(7)).
func (s *Socket) Unread() int { return s.ask(unix.SIOCINQ) }

// Unacknowledged returns how many bytes the other end's kernel has not acknowledged (SIOCOUTQ, tcp(7)).
func (s *Socket) Unacknowledged() int { return s.ask(unix.SIOCOUTQ) }

// ask asks the kernel for a number of bytes. It returns 0 for a closed socket.
func (s *Socket) ask(what uint) (n int) {
	_ = s.raw.Control(func(fd uintptr) {
		n, _ = unix.IoctlGetInt(int(fd), what)
	})
	return n
}

// Timed returns Gate.Timed.
func (s *Socket) Timed() bool { return s.gate != nil && s.gate.Timed() }

// TCP returns the connection. Only the socket reads it or writes to it.
func (s *Socket) TCP() *net.TCPConn { return s.conn }

// Close closes the connection.
func (s *Socket) Close() error { return s.conn.Close() }
