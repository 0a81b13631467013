package postgres

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// longestFrame is what the server takes and sends at most (MaxAllocSize, memutils.h), and
// longestStartup what it takes before a login (MAX_STARTUP_PACKET_LENGTH, pqcomm.h), in bytes.
const (
	longestFrame   = 1<<30 - 1
	longestStartup = 10000
)

var errFrame = errors.New("these are no messages of PostgreSQL's protocol 3.0")

// A frame is a message as it came: its type, its length with itself, and what it says.
type frame []byte

func (f frame) kind() byte   { return f[0] }
func (f frame) body() []byte { return f[5:] }

// readFrame reads one message. The error is io.EOF where there is none.
func readFrame(r *bufio.Reader) (frame, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := int64(binary.BigEndian.Uint32(head[1:]))
	if n < 4 || n > longestFrame {
		return nil, fmt.Errorf("%w: a length of %d", errFrame, n)
	}
	return readRest(r, head[:], n-4)
}

// readRest reads n more bytes. A long message is given memory as it comes: a length alone
// must not cost a gigabyte.
func readRest(r *bufio.Reader, head []byte, n int64) (frame, error) {
	const trusted = 1 << 16
	if n <= trusted {
		f := make(frame, len(head)+int(n))
		copy(f, head)
		_, err := io.ReadFull(r, f[len(head):])
		return f, whole(err)
	}
	var b bytes.Buffer
	b.Write(head)
	_, err := io.CopyN(&b, r, n)
	return b.Bytes(), whole(err)
}

// whole is the error of a connection that ends within a message.
func whole(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// readStartup reads a message of those before the login, which have no type.
func readStartup(r *bufio.Reader) (raw []byte, code uint32, err error) {
	var head [8]byte
	if first, err := r.Peek(1); err != nil {
		return nil, 0, err
	} else if first[0] == tlsHandshake {
		return nil, 0, errTLS
	}
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, 0, whole(err)
	}
	n := int64(binary.BigEndian.Uint32(head[:]))
	if n < 8 || n > longestStartup {
		return nil, 0, fmt.Errorf("%w: a login of %d bytes", errFrame, n)
	}
	raw, err = readRest(r, head[:], n-8)
	return raw, binary.BigEndian.Uint32(head[4:]), err
}

// frames takes an answer apart; nil: it is none.
func frames(raw []byte) (all []frame) {
	for len(raw) > 0 {
		if len(raw) < 5 {
			return nil
		}
		n := int64(binary.BigEndian.Uint32(raw[1:])) + 1
		if n < 5 || n > int64(len(raw)) {
			return nil
		}
		all = append(all, frame(raw[:n]))
		raw = raw[n:]
	}
	return all
}
