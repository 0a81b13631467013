package process

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// A message is a request or an answer between an explorer and a keeper, over a Unix socket. It is a length of four
// bytes, with the files attached, and then JSON.
type message struct {
	Do    string   // "network", "address", "socket", "diag", "spawn" or "run"; in an answer: "ready", "" or "ended"
	Error string   `json:",omitempty"`
	Line  string   `json:",omitempty"` // command line for "run", address for "address"
	Dir   string   `json:",omitempty"`
	Env   []string `json:",omitempty"`
	IPv6  bool     `json:",omitempty"` // for "socket"
	Count int      `json:",omitempty"` // for "socket"
	PID   int      `json:",omitempty"` // Command.PID, for "run"

	files []*os.File
	pid   int // process id of the sender, as the receiver sees it
}

// maxMessage is larger than the longest command line with its environment (execve(2)).
const maxMessage = 16 << 20

// channel returns the two ends of a connection. Messages that arrive at the first end include their sender.
func channel() (here *net.UnixConn, there *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	there = os.NewFile(uintptr(fds[1]), "keeper")
	mine := os.NewFile(uintptr(fds[0]), "keeper")
	defer mine.Close()
	if err := unix.SetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("SO_PASSCRED: %w", err), there.Close())
	}
	c, err := net.FileConn(mine)
	if err != nil {
		return nil, nil, errors.Join(err, there.Close())
	}
	return c.(*net.UnixConn), there, nil
}

func send(c *net.UnixConn, m message) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	var rights []byte
	if len(m.files) > 0 {
		fds := make([]int, len(m.files))
		for i, f := range m.files {
			if err := control(f, func(fd int) error { fds[i] = fd; return nil }); err != nil {
				return err
			}
		}
		rights = unix.UnixRights(fds...)
	}
	header := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	if _, _, err := c.WriteMsgUnix(header, rights, nil); err != nil {
		return err
	}
	_, err = c.Write(body)
	return err
}

func receive(c *net.UnixConn) (m message, err error) {
	header, control := make([]byte, 4), make([]byte, 256)
	n, controls, _, _, err := c.ReadMsgUnix(header, control)
	if err != nil {
		return m, err
	}
	if n == 0 {
		return m, io.EOF
	}
	m.files, m.pid = carried(control[:controls])
	if _, err = io.ReadFull(c, header[n:]); err == nil {
		size := binary.BigEndian.Uint32(header)
		if size > maxMessage {
			err = fmt.Errorf("a message of %d bytes", size)
		} else {
			body := make([]byte, size)
			if _, err = io.ReadFull(c, body); err == nil {
				err = json.Unmarshal(body, &m)
			}
		}
	}
	if err != nil {
		closeAll(m.files)
		m.files = nil
	}
	return m, err
}

// carried returns the files and the sender of a message (unix(7)).
func carried(control []byte) (files []*os.File, pid int) {
	parts, _ := unix.ParseSocketControlMessage(control)
	for _, part := range parts {
		if fds, err := unix.ParseUnixRights(&part); err == nil {
			for _, fd := range fds {
				files = append(files, os.NewFile(uintptr(fd), "passed"))
			}
		}
		if who, err := unix.ParseUnixCredentials(&part); err == nil {
			pid = int(who.Pid)
		}
	}
	return files, pid
}

// control calls `do` with the descriptor of f. File.Fd would make f, and its copies in other processes, blocking.
func control(f *os.File, do func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	if err := raw.Control(func(fd uintptr) { result = do(int(fd)) }); err != nil {
		return err
	}
	return result
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
