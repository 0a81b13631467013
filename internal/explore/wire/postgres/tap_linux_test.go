package postgres_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/oversell/oversell/internal/explore/wire/postgres"
	"github.com/oversell/oversell/internal/explore/wire/wiretest"
	"github.com/oversell/oversell/internal/require"
)

// both records the two sides of a gate in front of a server.
type both struct {
	*wiretest.Both
	gate *wiretest.Recorder
}

func through(t testing.TB, server string) *both {
	t.Helper()
	gate := &wiretest.Recorder{}
	return &both{wiretest.Through(t, gate, postgres.Protocol(nil), server), gate}
}

// differences describes the bytes that the gate must not change, but has changed.
func (b *both) differences(t testing.TB) (found []string) {
	t.Helper()
	program, server := b.Said(t)
	for i := range program {
		up, asked := withoutTLS(program[i][0])
		terminate := []byte{'X', 0, 0, 0, 4} // Terminate, which may be missing on one side
		got, settings := withoutSettings(server[i][0])
		if d := wiretest.Difference(bytes.TrimSuffix(got, terminate), bytes.TrimSuffix(up, terminate)); d != "" {
			found = append(found, fmt.Sprintf("connection %d, to the server: %s", i, d))
		}
		down := append(bytes.Repeat([]byte{'N'}, asked), withoutAnswers(server[i][1], settings)...)
		if d := wiretest.Difference(program[i][1], down); d != "" {
			found = append(found, fmt.Sprintf("connection %d, to the program: %s", i, d))
		}
	}
	return found
}

func withoutTLS(up []byte) (rest []byte, asked int) {
	for len(up) >= 8 && binary.BigEndian.Uint32(up) == 8 {
		up = up[8:]
		asked++
	}
	return up, asked
}

func withoutSettings(up []byte) (rest []byte, found int) {
	for _, sql := range []string{postgres.NoTimeouts, postgres.NoDeadlocks, postgres.NoGhosts} {
		raw, err := (&pgproto3.Query{String: sql}).Encode(nil)
		if err != nil {
			panic(err)
		}
		before, after, ok := bytes.Cut(up, raw)
		if ok {
			up = append(append([]byte(nil), before...), after...)
			found++
		}
	}
	return up, found
}

// withoutAnswers removes the answers to the session's own statements. They follow the first
// ReadyForQuery.
func withoutAnswers(down []byte, found int) (rest []byte) {
	readies := 0
	for at := 0; at+5 <= len(down); {
		end := at + 1 + int(binary.BigEndian.Uint32(down[at+1:]))
		if readies == 0 || readies > found {
			rest = append(rest, down[at:end]...)
		}
		if down[at] == 'Z' {
			readies++
		}
		at = end
	}
	return rest
}

// config returns a pgconn.Config for addr instead of the server in url.
func config(t testing.TB, url, addr string) *pgconn.Config {
	t.Helper()
	c, err := pgconn.ParseConfig(url)
	require.NoError(t, err)
	host, port, _ := net.SplitHostPort(addr)
	c.Host = host
	number, err := net.LookupPort("tcp", port)
	require.NoError(t, err)
	c.Port = uint16(number)
	for _, f := range c.Fallbacks {
		f.Host, f.Port = c.Host, c.Port
	}
	return c
}

func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func must[V any](v V, err error) func(testing.TB) V {
	return func(t testing.TB) V {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}

type raw struct {
	net.Conn
	front *pgproto3.Frontend
}

func dial(t testing.TB, url, addr string) *raw {
	t.Helper()
	c := must(pgconn.ConnectConfig(soon(t), config(t, url, addr)))(t)
	h := must(c.Hijack())(t)
	t.Cleanup(func() { _ = h.Conn.Close() })
	_ = h.Conn.SetDeadline(time.Now().Add(20 * time.Second))
	return &raw{h.Conn, h.Frontend}
}

// say sends messages in one piece. It reads until messages of the types in want have come, in this
// order. Other types may come in between.
func (r *raw) say(t testing.TB, want string, messages ...pgproto3.FrontendMessage) string {
	t.Helper()
	for _, m := range messages {
		r.front.Send(m)
	}
	require.NoError(t, r.front.Flush())
	return r.hear(t, want)
}

func (r *raw) hear(t testing.TB, want string) (got string) {
	t.Helper()
	for want != "" {
		m, err := r.front.Receive()
		if err != nil {
			t.Fatalf("got %s and still want %s: %v", got, want, err)
		}
		b, err := m.(interface {
			Encode([]byte) ([]byte, error)
		}).Encode(nil)
		require.NoError(t, err)
		got += string(b[:1])
		if b[0] == want[0] {
			want = want[1:]
		} else if b[0] == 'E' {
			t.Fatalf("got %s and still want %s: %s", got, want, m.(*pgproto3.ErrorResponse).Message)
		}
	}
	return got
}

// hangUp closes the program's side and waits for the other side.
func (r *raw) hangUp() {
	_, _ = r.Write([]byte{'X', 0, 0, 0, 4})
	_, _ = io.Copy(io.Discard, r)
	_ = r.Close()
}
