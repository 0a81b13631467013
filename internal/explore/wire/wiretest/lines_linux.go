package wiretest

import (
	"bufio"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/wire"
)

// lines is a wire.Session whose commands and answers are lines.
type lines struct{ program, server *wire.Socket }

func (lines) Login() (int64, error) { return 1, nil }

func (l lines) Next() (*wire.Command, error) {
	line, err := l.program.R.ReadString('\n')
	c := &wire.Command{Text: strings.TrimSpace(line), Raw: []byte(line), Gated: true, Effect: schedule.Writes}
	c.Ends = c.Text == "COMMIT"
	if c.Text == "BEGIN" || strings.HasPrefix(c.Text, "SET ") {
		c.Effect = schedule.Local
	}
	if c.Text == "PING" {
		c.Effect, c.Gated = schedule.Local, false
	}
	return c, err
}

func (l lines) Receive(*wire.Command) (wire.Message, error) {
	line, err := l.server.R.ReadString('\n')
	return wire.Message{Raw: []byte(line), Ends: true}, err
}

func (lines) TimedOut(_ *wire.Command, raw []byte) []byte { return raw }

// Echo starts a server and a gate in front of it, until the test ends, and returns the gate's address.
// Each line is a command. The server answers it with the same line, unless `silent` contains the line.
func Echo(t testing.TB, gate wire.Gate, silent ...string) (address string) {
	t.Helper()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			go func() {
				for from := bufio.NewScanner(conn); from.Scan(); {
					if !slices.Contains(silent, from.Text()) {
						_, _ = conn.Write([]byte(from.Text() + "\n"))
					}
				}
			}()
		}
	}()
	open := func(program, server *wire.Socket) wire.Session { return lines{program, server} }
	return Proxy(t, gate, wire.Protocol{Name: "mysql", Open: open}, server.Addr().String())
}
