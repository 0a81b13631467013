package target

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/wire"
	"github.com/oversell/oversell/internal/explore/wire/wiretest"
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
	return c, err
}

func (l lines) Receive(*wire.Command) (wire.Message, error) {
	line, err := l.server.R.ReadString('\n')
	return wire.Message{Raw: []byte(line), Ends: true}, err
}

func (lines) TimedOut(_ *wire.Command, raw []byte) []byte { return raw }

// echo returns the address of a gate to a server that answers each line with itself.
func echo(t *testing.T, f *gateTable) (address string) {
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
			go func() { _, _ = io.Copy(conn, conn) }()
		}
	}()
	open := func(program, server *wire.Socket) wire.Session { return lines{program, server} }
	return wiretest.Proxy(t, f, wire.Protocol{Name: "mysql", Open: open}, server.Addr().String())
}

// TestBypass: a transaction of ignored commands is no event, from its BEGIN to its COMMIT. The COMMIT of any
// other transaction counts, even if a pattern matches it.
func TestBypass(t *testing.T) {
	f, err := newFloor(app.Ignore{Entries: []string{"jobs", "^COMMIT"}, Tables: []string{"jobs"}, Patterns: []*regexp.Regexp{regexp.MustCompile("^COMMIT")}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", echo(t, f))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	say := func(command string) (events int64) {
		before := f.moves()
		fmt.Fprintln(conn, command)
		if answer, err := answers.ReadString('\n'); err != nil || answer != command+"\n" {
			t.Fatalf("%s: %q, %v", command, answer, err)
		}
		return f.moves() - before
	}
	say("SELECT 1") // the login is over
	for _, c := range []struct {
		command string
		ignored bool
	}{
		{"BEGIN", true},
		{"SELECT id FROM jobs", true},
		{"COMMIT", true},
		{"BEGIN", true},
		{"UPDATE items SET stock = 0", false},
		{"UPDATE jobs SET state = 1", true},
		{"COMMIT", false},
	} {
		if events := say(c.command); (events == 0) != c.ignored {
			t.Errorf("%s: %d events, ignored should be %v", c.command, events, c.ignored)
		}
	}
}
