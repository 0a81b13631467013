package gates

import (
	"bufio"
	"fmt"
	"net"
	"regexp"
	"testing"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/wire/wiretest"
	"github.com/oversell/oversell/internal/require"
)

// TestBypass: Pulse.Moves counts no command of an ignored transaction, from its BEGIN to its COMMIT. The COMMIT of any
// other transaction counts, even if a pattern matches it.
func TestBypass(t *testing.T) {
	g, err := New(&app.App{Ignore: app.Ignore{Entries: []string{"jobs", "^COMMIT"}, Tables: []string{"jobs"}, Patterns: []*regexp.Regexp{regexp.MustCompile("^COMMIT")}}}, nil)
	require.NoError(t, err)
	conn, err := net.Dial("tcp", wiretest.Echo(t, g))
	require.NoError(t, err)
	defer conn.Close()
	answers := bufio.NewReader(conn)
	say := func(command string) (events int64) {
		before := g.Pulse.Moves()
		fmt.Fprintln(conn, command)
		if answer, err := answers.ReadString('\n'); err != nil || answer != command+"\n" {
			t.Fatalf("%s: %q, %v", command, answer, err)
		}
		return g.Pulse.Moves() - before
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
