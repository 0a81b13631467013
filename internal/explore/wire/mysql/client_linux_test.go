package mysql_test

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // mysql_native_password
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/require"
)

// A client speaks the protocol directly, to send what drivers do not send.
type client struct {
	t         testing.TB
	conn      net.Conn
	password  string
	challenge []byte
}

const clientCapabilities = 1<<0 | 1<<3 | 1<<9 | 1<<13 | 1<<15 | 1<<16 | 1<<17 | 1<<19 // LONG_PASSWORD, CONNECT_WITH_DB, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION, MULTI_STATEMENTS, MULTI_RESULTS, PLUGIN_AUTH

// dial connects and logs in. The parameter `more` lists capabilities that it sets even if the server has
// not offered them.
func dial(t testing.TB, address, password string, more uint32) *client {
	t.Helper()
	c := greet(t, address, password)
	c.send(1, c.response(clientCapabilities|more))
	if got := c.login(); got[0] != 0 {
		t.Fatalf("login: %q", got)
	}
	return c
}

func greet(t testing.TB, address, password string) *client {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	c := &client{t: t, conn: conn, password: password}
	p := c.receive()
	at := 1 + bytes.IndexByte(p[1:], 0) + 1 + 4
	c.challenge = append(append([]byte(nil), p[at:at+8]...), p[at+27:at+39]...)
	return c
}

func (c *client) response(capabilities uint32) []byte {
	b := binary.LittleEndian.AppendUint32(nil, capabilities)
	b = binary.LittleEndian.AppendUint32(b, 1<<24)
	b = append(b, 45)
	b = append(b, make([]byte, 19)...)
	b = append(b, 0xff, 0xff, 0, 0) // MariaDB's extended capabilities, for a client that looks like MariaDB's
	b = append(b, "shop\x00"...)
	scrambled := scramble(c.challenge, c.password)
	b = append(append(b, byte(len(scrambled))), scrambled...)
	return append(b, "shop\x00mysql_native_password\x00"...)
}

func scramble(challenge []byte, password string) []byte {
	one := sha1.Sum([]byte(password))                                       //nolint:gosec // as above
	two := sha1.Sum(one[:])                                                 //nolint:gosec // as above
	three := sha1.Sum(append(append([]byte(nil), challenge...), two[:]...)) //nolint:gosec // as above
	for i := range three {
		three[i] ^= one[i]
	}
	return three[:]
}

func (c *client) login() []byte {
	c.t.Helper()
	sequence, p := c.packet()
	if p[0] != 0xfe {
		return p
	}
	_, challenge, _ := bytes.Cut(p[1:], []byte{0})
	var answer []byte
	if c.password != "" {
		answer = scramble(challenge[:20], c.password)
	}
	c.send(sequence+1, answer)
	_, p = c.packet()
	return p
}

func (c *client) send(sequence byte, payload []byte) {
	c.t.Helper()
	if _, err := c.conn.Write(packet(sequence, payload)); err != nil {
		c.t.Fatal(err)
	}
}

func packet(sequence byte, payload []byte) []byte {
	n := len(payload)
	return append([]byte{byte(n), byte(n >> 8), byte(n >> 16), sequence}, payload...)
}

func (c *client) packet() (sequence byte, payload []byte) {
	c.t.Helper()
	var head [4]byte
	if _, err := io.ReadFull(c.conn, head[:]); err != nil {
		c.t.Fatal(err)
	}
	payload = make([]byte, int(head[0])|int(head[1])<<8|int(head[2])<<16)
	if _, err := io.ReadFull(c.conn, payload); err != nil {
		c.t.Fatal(err)
	}
	return head[3], payload
}

func (c *client) receive() []byte {
	c.t.Helper()
	_, p := c.packet()
	return p
}

func (c *client) command(code byte, rest ...byte) {
	c.t.Helper()
	c.send(0, append([]byte{code}, rest...))
}

// until reads up to n EOF packets, or an OK or an ERR. It returns the number of packets.
func (c *client) until(n int) (packets int, last []byte) {
	c.t.Helper()
	for {
		last = c.receive()
		packets++
		switch {
		case last[0] == 0xff, packets == 1 && last[0] == 0:
			return packets, last
		case last[0] == 0xfe && len(last) < 9:
			if n--; n == 0 {
				return packets, last
			}
		}
	}
}

func (c *client) rows() (packets int) {
	c.t.Helper()
	for {
		packets++
		if last := c.receive(); last[0] == 0xff || last[0] == 0xfe && len(last) < 9 {
			return packets
		}
	}
}

func (c *client) prepare(sql string) uint32 {
	c.t.Helper()
	c.command(0x16, []byte(sql)...)
	head := c.receive()
	if head[0] != 0 {
		c.t.Fatalf("%s: %q", sql, head)
	}
	for _, n := range []uint16{binary.LittleEndian.Uint16(head[5:]), binary.LittleEndian.Uint16(head[7:])} {
		if n > 0 {
			c.until(1)
		}
	}
	return binary.LittleEndian.Uint32(head[1:])
}

// execute sends STMT_EXECUTE. The bytes of rest follow the iteration count.
func (c *client) execute(id uint32, flags byte, rest ...byte) {
	c.t.Helper()
	b := binary.LittleEndian.AppendUint32(nil, id)
	c.command(0x17, append(append(b, flags, 1, 0, 0, 0), rest...)...)
}

func id(n uint32, rest ...byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, n), rest...)
}

func (c *client) quit() {
	c.t.Helper()
	c.command(0x01)
	_ = c.conn.Close()
}
