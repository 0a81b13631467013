package rest

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/target/backend"
	"github.com/oversell/oversell/internal/explore/target/gates"
	"github.com/oversell/oversell/internal/explore/wire"
	"github.com/oversell/oversell/internal/explore/wire/wiretest"
	"github.com/oversell/oversell/internal/require"
)

// A bytewise session reads each byte as a command. Its server never answers.
type bytewise struct{ program, server *wire.Socket }

func (s bytewise) Login() (int64, error) { return 7, nil }

func (s bytewise) Next() (*wire.Command, error) {
	_, err := s.program.R.ReadByte()
	return &wire.Command{Gated: true}, err
}

func (s bytewise) Receive(*wire.Command) (m wire.Message, err error) {
	_, err = s.server.R.ReadByte()
	return m, err
}

func (bytewise) TimedOut(_ *wire.Command, raw []byte) []byte { return raw }

// A slow backend reports that connection 7 waits, and never notices that its wait was ended.
type slow struct{ backend.Backend }

func (slow) Adopt(int64) {}

func (slow) Waiting(context.Context, bool) (map[int64]bool, error) {
	return map[int64]bool{7: true}, nil
}

func (slow) Interrupt(context.Context, int64) error { return nil }

// TestWaitingTimedOut: a command whose wait the schedule has ended does not wait any more, although its server still
// reports that wait. Otherwise the command's answer would come after the standstill.
func TestWaitingTimedOut(t *testing.T) {
	g, err := gates.New(&app.App{}, nil)
	require.NoError(t, err)
	g.Close()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer server.Close()
	protocol := wire.Protocol{Name: "bytes", Open: func(program, server *wire.Socket) wire.Session { return bytewise{program, server} }}
	program, err := new(net.Dialer).DialContext(t.Context(), "tcp", wiretest.Proxy(t, g, protocol, server.Addr().String()))
	require.NoError(t, err)
	defer program.Close()
	if _, err := program.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	var o *gates.Op
	for deadline := time.Now().Add(20 * time.Second); o == nil; g.Pulse.Wait(Look) {
		if time.Now().After(deadline) {
			t.Fatal("the command has not arrived")
		}
		if fresh := g.Table.Now().Fresh; len(fresh) > 0 {
			o = fresh[0]
		}
	}
	g.Table.LetGo(o)
	w := Waits{Gates: g, Backends: backend.Backends{"bytes": slow{}}}
	if waits, err := w.all(t.Context(), time.Second); err != nil || !waits {
		t.Errorf("before its end: %v, %v; want true", waits, err)
	}
	require.NoError(t, w.RunOut(t.Context(), o))
	if waits, err := w.all(t.Context(), time.Second); err != nil || waits {
		t.Errorf("after its end: %v, %v; want false", waits, err)
	}
}
