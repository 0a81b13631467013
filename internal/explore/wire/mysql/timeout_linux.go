package mysql

import (
	"strings"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/wire"
)

// TimedOut is wire.Session's. A statement that was interrupted (KILL QUERY: error 1317) is
// shown as one whose lock wait has lasted too long (1205): both roll the statement back and
// not the transaction. GET_LOCK then says 0 in place of NULL or an error.
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
	out := appendError(clip(raw, last.at), last.sequence, errorLockWait, "HY000", "Lock wait timeout exceeded; try restarting transaction")
	var a answer
	_, _ = a.feed(split(out[last.at:])[0].payload, len(out)-last.at-4)
	current.Answer = wire.Answer{Raw: out, Text: a.text(""), Failed: true}
	return out
}

// clip is a copy of the first n bytes.
func clip(raw []byte, n int) []byte { return append([]byte(nil), raw[:n]...) }

// A packet of an answer that has come whole.
type packet struct {
	at       int // in the answer
	sequence byte
	payload  []byte
}

// split takes an answer apart. A packet that goes on in the next is of no interest, since it
// is no error and no lock: its pieces are packets.
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

// gotNoLock is the answer of a GET_LOCK that waited too long; nil: this one did not.
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
		return nil // it has the lock, or it is no such statement
	case !killed:
		row := packets[rowAt]
		out = appendPacket(clip(raw, row.at), row.sequence, zeroRow(a.columns[0], binary))
		out = append(out, raw[row.at+4+len(row.payload):]...)
		name = a.columns[0].name
	case !asked: // DO GET_LOCK
		out = appendPacket(clip(raw, last.at), last.sequence, []byte{0, 0, 0, status[3], status[4], 0, 0})
		current.Answer = wire.Answer{Raw: out, Text: "ok"}
		return out
	case len(a.columns) == 1:
		out = appendPacket(clip(raw, last.at), last.sequence, zeroRow(a.columns[0], binary))
		out = appendPacket(out, last.sequence+1, status)
		name = a.columns[0].name
	case len(a.columns) > 1:
		return nil
	default: // the error came before the columns
		name = strings.TrimSpace(strings.TrimPrefix(current.Text, current.Text[:len("SELECT")]))
		out = appendPacket(clip(raw, last.at), last.sequence, []byte{1})
		out = appendPacket(out, last.sequence+1, lockColumn(name))
		out = appendPacket(out, last.sequence+2, status)
		out = appendPacket(out, last.sequence+3, zeroRow(column{kind: typeLong}, binary))
		out = appendPacket(out, last.sequence+4, status)
	}
	current.Answer = wire.Answer{Raw: out, Text: wire.Shorten(name + "=0"), Failed: true}
	return out
}

// zeroRow is a row of one column that is 0.
func zeroRow(c column, binary bool) []byte {
	if !binary {
		return []byte{1, '0'}
	}
	width := map[byte]int{typeTiny: 1, typeShort: 2, typeLong: 4, typeInt24: 4, typeLongLong: 8}[c.kind]
	if width == 0 { // a text
		return []byte{0, 0, 1, '0'}
	}
	return make([]byte, 2+width)
}

// lockColumn is the definition of a column that is an integer.
func lockColumn(name string) []byte {
	name = name[:min(len(name), 64)]
	b := append([]byte("\x03def\x00\x00\x00"), byte(len(name)))
	b = append(append(b, name...), 0, 0x0c)
	return append(b, 63, 0, 11, 0, 0, 0, typeLong, 0x80, 0, 0, 0, 0)
}
