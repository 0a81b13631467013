package mysql

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/wire"
)

// TestGreetingMySQL8 follows the documentation, since no MySQL 8 is available.
func TestGreetingMySQL8(t *testing.T) {
	payload := []byte("\x0a8.0.36\x00\x07\x00\x00\x00abcdefgh\x00\xff\xff\xff\x02\x00\xff\xdf\x15\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00ijklmnopqrst\x00caching_sha2_password\x00")
	raw := appendPacket(nil, 0, payload)
	g, err := greeting(raw, raw[4:])
	if err != nil || g.thread != 7 || g.mariadb {
		t.Fatalf("%+v, %v", g, err)
	}
	want := bytes.Replace(payload, []byte("\xff\xff\xff\x02\x00\xff\xdf"), []byte("\x5f\xf7\xff\x02\x00\xff\xd0"), 1)
	if !bytes.Equal(raw[4:], want) {
		t.Errorf("%q\nwant %q", raw[4:], want)
	}
	for n := range payload {
		short := appendPacket(nil, 0, payload[:n])
		if _, err := greeting(short, short[4:]); err == nil && n < 39 {
			t.Errorf("%d bytes are no greeting", n)
		}
	}
}

// TestReply checks which capabilities are refused, and which are removed.
func TestReply(t *testing.T) {
	for _, c := range []struct {
		payload string
		refused bool
		fails   bool
	}{
		{"", false, true},
		{"\x00\x02\x00\x00", false, true},
		{"\x00\x00\x00\x00" + string(make([]byte, 28)), true, true},
		{"\x00\x0a\x00\x00" + string(make([]byte, 28)), true, true},
		{"\x01\x02\x00\x0f" + string(make([]byte, 28)), false, false},
	} {
		raw := appendPacket(nil, 1, []byte(c.payload))
		err := reply(raw, raw[4:])
		var refused *wire.Refused
		if (err != nil) != c.fails || errors.As(err, &refused) != c.refused {
			t.Errorf("%q: %v", c.payload, err)
		}
	}
}

// TestCachingSHA2 follows the documentation (MySQL Source Code Documentation, "Caching_sha2
// Information"). After CHANGE_USER, each packet of the server ends an answer, so that the program sends
// its next packet. The exception says that the server has cached the password.
func TestCachingSHA2(t *testing.T) {
	for payload, want := range map[string]bool{
		"\xfecaching_sha2_password\x00abcdefghijklmnopqrst\x00": true,
		"\x01\x03":                     false,
		"\x01\x04":                     true,
		"\x01-----BEGIN PUBLIC KEY":    true,
		"\x00\x00\x00\x02\x00\x00\x00": true,
		"\xff\x15\x04#28000denied":     true,
	} {
		a := answer{kind: authenticates}
		if ends, err := a.feed([]byte(payload), len(payload)); err != nil || ends != want {
			t.Errorf("%q: %t, %v", payload, ends, err)
		}
	}
}

// TestLockLimit checks the time-out that lockLimit finds in a GET_LOCK.
func TestLockLimit(t *testing.T) {
	for sql, want := range map[string]time.Duration{
		"SELECT GET_LOCK('a', 1)": time.Second, "do get_lock ( 'a' , 0.5 )": 500 * time.Millisecond, "SELECT GET_LOCK('a', '2') AS got": 2 * time.Second,
		"SELECT GET_LOCK('a', -1)": wire.Endless, "SELECT GET_LOCK('a', 0)": 0, "SELECT GET_LOCK('a', 1 + 1)": 0, "SELECT GET_LOCK('a', 1e30)": 0,
		"SELECT GET_LOCK('a', 99999999999999999999)": longestLock, "UPDATE items SET stock = 1": 0,
	} {
		c := &wire.Command{}
		(&session{}).query(c, &request{}, sql)
		if c.Limit != want {
			t.Errorf("%s: %s, want %s", sql, c.Limit, want)
		}
	}
}

// TestDefaultLockAnswer: MySQL 8 interrupts GET_LOCK with an error before the columns.
func TestDefaultLockAnswer(t *testing.T) {
	s := &session{}
	killed := appendError(nil, 1, errorInterrupted, "70100", "Query execution was interrupted")
	c := &wire.Command{Text: "SELECT GET_LOCK('a', 5)", Named: true}
	a := answer{}
	for _, p := range split(s.TimedOut(c, killed)) {
		if ends, err := a.feed(p.payload, len(p.payload)); err != nil {
			t.Fatal(err)
		} else if ends && (p.sequence != 5 || a.text("SELECT") != "GET_LOCK('a', 5)=0") {
			t.Errorf("%d %s", p.sequence, a.text("SELECT"))
		}
	}
	if c.Answer.Text != "GET_LOCK('a', 5)=0" || !c.Answer.Failed {
		t.Errorf("%+v", c.Answer)
	}
	c = &wire.Command{Text: "DO GET_LOCK('a', 5)", Named: true}
	if got := s.TimedOut(c, killed); !bytes.Equal(got, []byte{7, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}) {
		t.Errorf("DO: %q", got)
	}
	other := appendError(nil, 1, 1213, "40001", "Deadlock found")
	if got := s.TimedOut(c, other); !bytes.Equal(got, other) {
		t.Errorf("a deadlock: %q", got)
	}
}

// TestAssembler: the packets do not depend on how the bytes arrive.
func TestAssembler(t *testing.T) {
	all := appendPacket(nil, 0, []byte("one"))
	all = appendPacket(all, 1, nil)
	all = appendPacket(all, 2, bytes.Repeat([]byte("a"), longestFragment))
	all = appendPacket(all, 3, []byte("b"))
	all = appendPacket(all, 4, bytes.Repeat([]byte("c"), longestFragment))
	all = appendPacket(all, 5, nil)
	all = appendPacket(all, 6, []byte("end"))
	want := []int{3, 0, longestFragment + 1, longestFragment, 3}
	for _, step := range []int{1000, 1 << 20, len(all)} {
		var a assembler
		var got []int
		for b := all; len(b) > 0; {
			piece := b[:min(step, len(b))]
			b = b[len(piece):]
			for len(piece) > 0 {
				n, whole := a.take(piece)
				piece = piece[n:]
				if whole {
					got = append(got, a.size)
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d at once: %d, want %d", step, got, want)
		}
	}
	r := bytes.NewReader(all)
	for _, n := range want {
		if _, payload, err := readPacket(r); err != nil || len(payload) != n {
			t.Errorf("%d bytes, %v; want %d", len(payload), err, n)
		}
	}
	if _, _, err := readPacket(r); !errors.Is(err, io.EOF) {
		t.Errorf("behind the end: %v", err)
	}
	for _, cut := range []int{1, 4, 5, 6} {
		if _, _, err := readPacket(bytes.NewReader(all[:cut])); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes: %v", cut, err)
		}
	}
}

// FuzzAnswer: parsing a server's bytes never panics. The result does not depend on the pieces in which
// they arrive.
func FuzzAnswer(f *testing.F) {
	ok := appendPacket(nil, 1, []byte("\x00\x01\x05\x02\x00\x00\x00"))
	column := appendPacket(appendPacket(nil, 1, []byte{1}), 2, lockColumn("a"))
	eof := appendPacket(nil, 3, []byte("\xfe\x00\x00\x02\x00"))
	rows := slices.Concat(column, eof, appendPacket(nil, 4, []byte{1, '7'}), appendPacket(nil, 5, []byte("\xfe\x00\x00\x0a\x00")), ok)
	binary := slices.Concat(column, eof, appendPacket(nil, 4, []byte{0, 0, 7, 0, 0, 0}), eof)
	cursor := slices.Concat(column, appendPacket(nil, 4, []byte("\xfe\x00\x00\x42\x00")))
	prepared := slices.Concat(appendPacket(nil, 1, []byte("\x00\x01\x00\x00\x00\x01\x00\x01\x00\x00\x00\x00")), column[5:], eof, column[5:], eof)
	for _, seed := range [][]byte{ok, rows, binary, cursor, prepared, appendError(nil, 1, 1213, "40001", "Deadlock"), {1, 0, 0, 1, 0xfb}, {0, 0, 0, 0}} {
		for k := range byte(authenticates + 1) {
			f.Add(k, true, seed)
			f.Add(k, false, seed)
		}
	}
	f.Fuzz(func(t *testing.T, k byte, isBinary bool, b []byte) {
		run := func(step int) (string, bool) {
			a := answer{kind: kind(k % byte(authenticates+1)), binary: isBinary}
			var from assembler
			for len(b) > 0 {
				piece := b[:min(step, len(b))]
				n, whole := from.take(piece)
				b = b[n:]
				if !whole {
					continue
				}
				if ends, err := a.feed(from.payload, from.size); ends || err != nil {
					break
				}
			}
			c := &wire.Command{Text: "SELECT GET_LOCK(1)", Named: true, Gated: true, Effect: schedule.Writes}
			a.fill(c, "SELECT")
			return c.Answer.Text, c.Answer.Failed
		}
		kept := b
		one, failed := run(len(b) + 1)
		b = kept
		if other, otherFailed := run(1); one != other || failed != otherFailed {
			t.Errorf("%q byte by byte, %q at once", other, one)
		}
		s := &session{binaryLock: isBinary}
		_ = s.TimedOut(&wire.Command{Text: "SELECT GET_LOCK(1)", Named: true}, kept)
		_ = s.TimedOut(&wire.Command{Text: "UPDATE"}, kept)
		_, _, _ = readPacket(bytes.NewReader(kept))
	})
}

// FuzzCommand: any bytes of a program are parsed as some command, without a panic.
func FuzzCommand(f *testing.F) {
	for _, seed := range []string{
		"\x03SELECT 1", "\x17\x01\x00\x00\x00\x00\x01\x00\x00\x00\x00\x01\x03\x00\xfd\x00\x07\x00\x00\x00\x01a",
		"\x17\x01\x00\x00\x00\x00\x01\x00\x00\x00\x02\x01\x0c\x00\x06\x00\x0b\xe8\x07\x01\x02\x03\x04\x05\x06\x00\x00\x00",
		"\x17\x01\x00\x00\x00\x00\x01\x00\x00\x00\x00\x01\x0b\x00\x05\x00\x0c\x01\x01\x00\x00\x00\x02\x03\x04\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x40",
		"\x17\xff\xff\xff\xff\x01\x01\x00\x00\x00\x00\x00", "\x18\x01\x00\x00\x00\x01\x00abc", "\x19\x01\x00\x00\x00", "\x1c\x01\x00\x00\x00\x05\x00\x00\x00",
		"\x16SELECT ?", "\x11shop\x00", "\x1f", "\x02shop", "\x12", "\xfa", "\x03BEGIN", "",
	} {
		f.Add([]byte(seed), []byte("\x17\x01\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01a"))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		s := Protocol(nil).Open(nil, nil).(*session)
		one := &prepared{sql: "SELECT ?, ?", said: says("SELECT ?, ?", nil), params: 2}
		s.prepared[1], s.last = one, one
		for _, payload := range [][]byte{first, second, first} {
			if len(payload) >= 1<<16 {
				return
			}
			c, q, err := s.command(appendPacket(nil, 0, payload), payload)
			if err != nil {
				return
			}
			if c == nil || q == nil || c.Text == "" && len(payload) > 1 && payload[0] != comQuery {
				t.Errorf("%q is no command", payload)
			}
		}
	})
}
