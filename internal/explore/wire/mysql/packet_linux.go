package mysql

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/oversell/oversell/internal/explore/wire"
)

// longestFragment is the payload length of a fragment that another fragment follows.
const longestFragment = 1<<24 - 1

// longestPacket is the largest packet that a server accepts (max_allowed_packet).
const longestPacket = 1 << 30

var (
	errShort = errors.New("a packet of MySQL's protocol is shorter than it says")
	errLong  = errors.New("a packet of MySQL's protocol is longer than 1 GiB")
)

// readPacket reads a packet with its continuations. It returns the raw bytes and the payload. The
// payload of a packet without a continuation is part of raw.
func readPacket(r io.Reader) (raw, payload []byte, err error) {
	for {
		at := len(raw)
		if raw, err = wire.ReadMore(r, raw, 4); err != nil {
			return nil, nil, err
		}
		n := fragment(raw[at:])
		if raw, err = wire.ReadMore(r, raw, n); err != nil {
			return nil, nil, err
		}
		switch {
		case len(raw) > longestPacket:
			return nil, nil, errLong
		case at == 0 && n < longestFragment:
			return raw, raw[4:], nil
		}
		payload = append(payload, raw[at+4:]...)
		if n < longestFragment {
			return raw, payload, nil
		}
	}
}

func fragment(head []byte) int { return int(head[0]) | int(head[1])<<8 | int(head[2])<<16 }

func appendPacket(b []byte, sequence byte, payload []byte) []byte {
	b = append(b, byte(len(payload)), byte(len(payload)>>8), byte(len(payload)>>16), sequence)
	return append(b, payload...)
}

// kept is the maximum payload that an assembler keeps, in bytes. No shown text needs more.
const kept = 16 << 10

// An assembler builds packets from the bytes as they arrive.
type assembler struct {
	head    []byte // the first bytes of a fragment's header, which has four
	left    int    // missing bytes of the fragment's payload
	goes    bool   // the packet continues in the next fragment
	inside  bool   // the header is complete, and the payload is not
	payload []byte // the first bytes of the payload
	size    int    // full length
}

// take consumes bytes up to the end of a packet. It returns the number of consumed bytes, and whether
// the packet is complete.
func (a *assembler) take(b []byte) (n int, whole bool) {
	for n < len(b) {
		if !a.inside {
			if len(a.head) == 0 && !a.goes {
				a.payload, a.size = a.payload[:0], 0
			}
			take := min(4-len(a.head), len(b)-n)
			a.head = append(a.head, b[n:n+take]...)
			n += take
			if len(a.head) < 4 {
				return n, false
			}
			a.left = fragment(a.head)
			a.goes, a.inside, a.head = a.left == longestFragment, true, a.head[:0]
		}
		take := min(a.left, len(b)-n)
		if room := kept - len(a.payload); room > 0 {
			a.payload = append(a.payload, b[n:n+min(take, room)]...)
		}
		a.size += take
		a.left -= take
		n += take
		if a.left > 0 {
			return n, false
		}
		a.inside = false
		if !a.goes {
			return n, true
		}
	}
	return n, false
}

// A reader decodes a payload. For a missing value it returns 0 and sets short.
type reader struct {
	b     []byte
	short bool
}

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.short = true
		n = uint64(len(r.b))
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) number(n uint64) uint64 {
	var all [8]byte
	copy(all[:], r.bytes(n))
	return binary.LittleEndian.Uint64(all[:])
}

func (r *reader) length() uint64 {
	switch first := r.number(1); first {
	case 0xfc:
		return r.number(2)
	case 0xfd:
		return r.number(3)
	case 0xfe:
		return r.number(8)
	case 0xfb, 0xff: // NULL, or no value
		r.short = true
		return 0
	default:
		return first
	}
}

func (r *reader) counted() []byte { return r.bytes(r.length()) }

func (r *reader) terminated() []byte {
	end := bytes.IndexByte(r.b, 0)
	if end < 0 {
		r.short = true
		return nil
	}
	b := r.b[:end]
	r.b = r.b[end+1:]
	return b
}
