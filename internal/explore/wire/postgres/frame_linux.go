package postgres

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/oversell/oversell/internal/explore/wire"
)

// longestFrame is the maximum message size of the server (MaxAllocSize, memutils.h), and longestStartup
// its maximum before a login (MAX_STARTUP_PACKET_LENGTH, pqcomm.h), both in bytes.
const (
	longestFrame   = 1<<30 - 1
	longestStartup = 10000
)

var errFrame = errors.New("these are no messages of PostgreSQL's protocol 3.0")

// A frame is a message: its type, its length including the length field, and its content.
type frame []byte

func (f frame) kind() byte   { return f[0] }
func (f frame) body() []byte { return f[5:] }

// readFrame reads one message. The error is io.EOF if there is none.
func readFrame(r *bufio.Reader) (frame, error) {
	head, err := wire.ReadMore(r, nil, 5)
	if err != nil {
		return nil, err
	}
	n := int64(binary.BigEndian.Uint32(head[1:]))
	if n < 4 || n > longestFrame {
		return nil, fmt.Errorf("%w: a length of %d", errFrame, n)
	}
	return wire.ReadMore(r, head, int(n)-4)
}

// readStartup reads a message before the login, which has no type.
func readStartup(r *bufio.Reader) (raw []byte, code uint32, err error) {
	if first, err := r.Peek(1); err != nil {
		return nil, 0, err
	} else if first[0] == tlsHandshake {
		return nil, 0, errTLS
	}
	if raw, err = wire.ReadMore(r, nil, 8); err != nil {
		return nil, 0, err
	}
	n := int64(binary.BigEndian.Uint32(raw))
	if n < 8 || n > longestStartup {
		return nil, 0, fmt.Errorf("%w: a login of %d bytes", errFrame, n)
	}
	raw, err = wire.ReadMore(r, raw, int(n)-8)
	return raw, binary.BigEndian.Uint32(raw[4:]), err
}

// frames splits an answer into frames. It returns nil if that is impossible.
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
