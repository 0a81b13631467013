package mysql

import (
	"bytes"
	"strings"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/wire"
)

// TimedOut implements wire.Session. It replaces the error of an interrupted statement (KILL QUERY:
// 1317) by the error of a lock wait time-out (1205). Both errors roll back only the statement. GET_LOCK
// then returns 0 instead of NULL or an error.
func (s *session) TimedOut(current *wire.Command, raw []byte) []byte {
	packets := split(raw)
	if len(packets) == 0 {
		return raw
	}
	s.mu.Lock()
	binary := s.binaryLock
	s.mu.Unlock()
	last := packets[len(packets)-1]
	killed := isError(last.payload) && int(last.payload[1])|int(last.payload[2])<<8 == errorInterrupted
	switch {
	case current.Named:
		if zero := gotNoLock(current, raw, packets, killed, binary); zero != nil {
			return zero
		}
		return raw
	case !killed:
		return raw
	}
	out := appendError(bytes.Clone(raw[:last.at]), last.sequence, errorLockWait, "HY000", "Lock wait timeout exceeded; try restarting transaction")
	var a answer
	_, _ = a.feed(split(out[last.at:])[0].payload, len(out)-last.at-4)
	current.Answer = wire.Answer{Raw: out, Text: a.text(""), Failed: true}
	return out
}

// A packet is one packet of a complete answer.
type packet struct {
	at       int // offset in the answer
	sequence byte
	payload  []byte
}

// split splits an answer into packets. It does not join fragments, since no error and no answer to a
// GET_LOCK is longer than one fragment.
func split(raw []byte) (all []packet) {
	for at := 0; at+4 <= len(raw); {
		n := fragment(raw[at:])
		if at+4+n > len(raw) {
			return nil
		}
		all = append(all, packet{at, raw[at+3], raw[at+4 : at+4+n]})
		at += 4 + n
	}
	return all
}

// gotNoLock builds the answer of a GET_LOCK after its time-out. It returns nil if the GET_LOCK
// succeeded, or for another statement.
func gotNoLock(current *wire.Command, raw []byte, packets []packet, killed, binary bool) []byte {
	a := answer{binary: binary}
	rowAt := -1
	for i, p := range packets {
		before := a.rows
		if _, err := a.feed(p.payload, len(p.payload)); err != nil {
			return nil
		}
		if a.rows > before {
			rowAt = i
		}
	}
	last := packets[len(packets)-1]
	asked := effect.SQL(current.Text, effect.MySQL).Verb == "SELECT"
	status := []byte{0xfe, 0, 0, byte(a.status), byte(a.status >> 8)}
	var out []byte
	name := "GET_LOCK"
	switch {
	case !killed && (rowAt < 0 || len(a.columns) != 1 || len(a.firstRow) != 1 || a.firstRow[0] != null):
		return nil // the GET_LOCK got its lock, or this is another statement
	case !killed:
		row := packets[rowAt]
		out = appendPacket(bytes.Clone(raw[:row.at]), row.sequence, zeroRow(a.columns[0], binary))
		out = append(out, raw[row.at+4+len(row.payload):]...)
		name = a.columns[0].name
	case !asked: // DO GET_LOCK
		out = appendPacket(bytes.Clone(raw[:last.at]), last.sequence, []byte{0, 0, 0, status[3], status[4], 0, 0})
		current.Answer = wire.Answer{Raw: out, Text: "ok"}
		return out
	case len(a.columns) == 1:
		out = appendPacket(bytes.Clone(raw[:last.at]), last.sequence, zeroRow(a.columns[0], binary))
		out = appendPacket(out, last.sequence+1, status)
		name = a.columns[0].name
	case len(a.columns) > 1:
		return nil
	default: // the error came before the columns
		name = strings.TrimSpace(strings.TrimPrefix(current.Text, current.Text[:len("SELECT")]))
		out = appendPacket(bytes.Clone(raw[:last.at]), last.sequence, []byte{1})
		out = appendPacket(out, last.sequence+1, lockColumn(name))
		out = appendPacket(out, last.sequence+2, status)
		out = appendPacket(out, last.sequence+3, zeroRow(column{kind: typeLong}, binary))
		out = appendPacket(out, last.sequence+4, status)
	}
	current.Answer = wire.Answer{Raw: out, Text: wire.Shorten(name + "=0"), Failed: true}
	return out
}

func zeroRow(c column, binary bool) []byte {
	if !binary {
		return []byte{1, '0'}
	}
	width := map[byte]int{typeTiny: 1, typeShort: 2, typeLong: 4, typeInt24: 4, typeLongLong: 8}[c.kind]
	if width == 0 { // the row is text
		return []byte{0, 0, 1, '0'}
	}
	return make([]byte, 2+width)
}

func lockColumn(name string) []byte {
	name = name[:min(len(name), 64)]
	b := append([]byte("\x03def\x00\x00\x00"), byte(len(name)))
	b = append(append(b, name...), 0, 0x0c)
	return append(b, 63, 0, 11, 0, 0, 0, typeLong, 0x80, 0, 0, 0, 0)
}
