package redis

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/wire"
	"github.com/oversell/oversell/internal/explore/wire/wiretest"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

// The class of a command, and of its answer. "reads" and "writes" wait at the gate.
const (
	passed  = "passed"
	reading = "reads"
	writing = "writes"

	changed   = "changed"
	unchanged = "unchanged"
	failed    = "failed"         // failed without a change
	both      = "changed failed" // failed, and may have changed something
)

func taken(o *wire.Command) string {
	switch {
	case !o.Gated && o.Effect == schedule.Local:
		return passed
	case o.Gated && o.Effect == schedule.Reads:
		return reading
	case o.Gated && o.Effect == schedule.Writes:
		return writing
	}
	return fmt.Sprintf("gated %t, effect %d", o.Gated, o.Effect)
}

func came(o *wire.Command) string {
	switch {
	case o.Answer.Changed && o.Answer.Failed:
		return both
	case o.Answer.Changed:
		return changed
	case o.Answer.Failed:
		return failed
	}
	return unchanged
}

// TestCommands sends the commands of testdata/commands.txt.
func TestCommands(t *testing.T) {
	text, err := os.ReadFile("testdata/commands.txt")
	require.NoError(t, err)
	server := localservertest.Redis(t)
	recorder := &wiretest.Recorder{}
	c := dial(t, wiretest.Proxy(t, recorder, Protocol(), server.Addr))
	word := regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\S+`)
	long := strings.NewReplacer("LONG30", strings.Repeat("é", 30), "LONG", strings.Repeat("é", 50))
	for line := range strings.Lines(string(text)) {
		if line == "\n" || line[0] == '#' {
			continue
		}
		sent, right, _ := strings.Cut(long.Replace(strings.TrimSuffix(line, "\n")), " => ")
		words, want := word.FindAllString(sent, -1), strings.Split(right, " | ")
		for i, w := range words {
			if plain, err := strconv.Unquote(w); err == nil {
				words[i] = plain
			}
		}
		answer := c.do(t, words...)
		commands := recorder.Commands()
		o := commands[len(commands)-1]
		got := []string{o.Text, taken(o), o.Answer.Text, came(o)}
		if want[0] == "" {
			want[0] = o.Text
		}
		if want[2] == "" {
			want[2] = answer
		}
		if want[2] = cut(want[2]); !slices.Equal(got, want) || answer != o.Answer.Text {
			t.Errorf("%q\n got %q\nwant %q", words, got, want)
		}
		if o.Silent || o.Named || o.Ends || len(o.Answer.Made) > 0 {
			t.Errorf("%q: %+v", words, o)
		}
	}
	if n := len(recorder.Commands()); n < 95 {
		t.Errorf("only %d commands", n)
	}
}

// TestWatchFails: EXEC answers nil if a watched key has changed.
func TestWatchFails(t *testing.T) {
	server := localservertest.Redis(t)
	recorder := &wiretest.Recorder{}
	c := dial(t, wiretest.Proxy(t, recorder, Protocol(), server.Addr))
	for _, line := range []string{"WATCH a", "SET a 1", "MULTI", "SELECT 3", "SET a 2", "EXEC", "GET a"} {
		c.do(t, strings.Fields(line)...)
	}
	commands := recorder.Commands()
	o, after := commands[5], commands[6]
	if o.Text != "MULTI {SELECT 3; SET a 2} EXEC" || taken(o) != writing || o.Answer.Text != "nil" || came(o) != failed {
		t.Errorf("%s: %s %s %s", o.Text, taken(o), o.Answer.Text, came(o))
	}
	if after.Text != "GET a" || after.Answer.Text != `"1"` {
		t.Errorf("%s: %s: the database was not changed", after.Text, after.Answer.Text)
	}
}

// TestRenouncedAnswers: after CLIENT REPLY OFF and SKIP, the program gets the same answers as
// without a gate, and the gate gets all answers.
func TestRenouncedAnswers(t *testing.T) {
	server := localservertest.Redis(t)
	recorder := &wiretest.Recorder{}
	const sent = "CLIENT REPLY SKIP\r\nINCR a\r\nINCR a\r\nclient reply off\r\nINCR a\r\nCLIENT REPLY SKIP\r\nSUBSCRIBE c\r\nUNSUBSCRIBE c\r\n" +
		"MULTI\r\nINCR a\r\nEXEC\r\nCLIENT REPLY ON\r\nGET a\r\nCLIENT REPLY OFF\r\nCLIENT REPLY nonsense\r\nRESET\r\nCLIENT REPLY\r\n"
	want := []string{"2", "[subscribe c 1]", "[unsubscribe c 0]", "OK", `"4"`, "RESET", "error ERR wrong number of arguments for 'client|reply' command"}
	through := dial(t, wiretest.Proxy(t, recorder, Protocol(), server.Addr))
	through.send(t, sent)
	through.expect(t, want...)
	if answer := recorder.Commands()[1].Answer; answer.Text != "1" || !answer.Changed {
		t.Errorf("%+v", answer)
	}
	direct := dial(t, server.Addr)
	direct.do(t, "DEL", "a")
	direct.send(t, sent)
	direct.expect(t, want...)
}

// TestTimeoutByEvent: the event timeout ends a command's wait. The command's own time-out does not.
func TestTimeoutByEvent(t *testing.T) {
	server := localservertest.Redis(t)
	direct := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer direct.Close()
	gate := &lets{joins{joined: make(chan int64, 1)}}
	c := dial(t, wiretest.Proxy(t, gate, Protocol(), server.Addr))
	id := <-gate.joined
	for _, words := range [][]string{
		{"BLPOP", "q", "0.001"}, {"BLMOVE", "q", "p", "LEFT", "LEFT", "0.001"}, {"BZPOPMIN", "z", "0.001"}, {"XREAD", "BLOCK", "1", "STREAMS", "x", "$"},
	} {
		c.send(t, resp(words...))
		until(t, direct, "a wait", func(list string) bool {
			return strings.Contains(list, fmt.Sprintf("id=%d ", id)) && strings.Contains(list, "flags=b")
		})
		commands := gate.Commands()
		o := commands[len(commands)-1]
		if o.Limit == 0 || o.Unlimited == nil {
			t.Errorf("%s blocks", o.Text)
		}
		if n, err := direct.Do(t.Context(), "CLIENT", "UNBLOCK", id, "TIMEOUT").Int(); n != 1 || err != nil {
			t.Fatalf("CLIENT UNBLOCK: %d, %v", n, err)
		}
		c.expect(t, "nil")
		if raw := (&session{}).TimedOut(o, o.Answer.Raw); string(raw) != "*-1\r\n" && string(raw) != "$-1\r\n" || came(o) != failed {
			t.Errorf("%s: %q, %s", o.Text, raw, came(o))
		}
	}
}

// A joins is a recorder that reports the id of each connection after the login.
type joins struct {
	wiretest.Recorder
	joined chan int64
}

func (g *joins) Joined(c *wire.Conn) { g.joined <- c.ID }

// lets is a gate that releases every command at once.
type lets struct{ joins }

func (g *lets) Arrived(o *wire.Command) {
	o.Hold()
	o.Let()
	g.joins.Arrived(o)
}

func (g *lets) Answered(o *wire.Command) { o.Deliver() }

func TestLogin(t *testing.T) {
	server := localservertest.Redis(t)
	direct := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer direct.Close()
	gate := &joins{joined: make(chan int64, 1)}
	proxy := wiretest.Proxy(t, gate, Protocol(), server.Addr)
	knows := func(t *testing.T, c *client) {
		t.Helper()
		if id, got := fmt.Sprint(<-gate.joined), c.do(t, "CLIENT", "ID"); got != id {
			t.Errorf("the id is %s, not %s", got, id)
		}
	}
	t.Run("a program that is silent", func(t *testing.T) {
		c := dial(t, proxy)
		id := <-gate.joined
		if got := c.do(t, "CLIENT", "ID"); got != fmt.Sprint(id) {
			t.Errorf("the id is %s, not %d", got, id)
		}
	})
	require.NoError(t, direct.ConfigSet(t.Context(), "requirepass", "open").Err())
	t.Run("AUTH, in a pipeline", func(t *testing.T) {
		c := dial(t, proxy)
		c.send(t, "GET a\r\nAUTH shut\r\nMULTI\r\nAUTH open\r\nSET a 1\r\n")
		c.expect(t, "error NOAUTH Authentication required.", "error WRONGPASS invalid username-password pair or user is disabled.",
			"error NOAUTH Authentication required.", "OK", "OK")
		knows(t, c)
		commands := gate.Commands()
		if o := commands[len(commands)-2]; o.Text != "SET a 1" || taken(o) != writing {
			t.Errorf("%s: %s", o.Text, taken(o))
		}
	})
	t.Run("HELLO", func(t *testing.T) {
		c := dial(t, proxy)
		if got := c.do(t, "HELLO", "3"); !strings.HasPrefix(got, "error NOAUTH") {
			t.Error(got)
		}
		if got := c.do(t, "HELLO", "3", "AUTH", "default", "open"); !strings.HasPrefix(got, "{server: redis") {
			t.Error(got)
		}
		knows(t, c)
		c.do(t, "SUBSCRIBE", "c")
		if got := c.do(t, "LRANGE", "none", "0", "-1"); got != "[]" {
			t.Error(got)
		}
	})
	t.Run("a user who may not ask", func(t *testing.T) {
		direct := dial(t, server.Addr)
		direct.do(t, "AUTH", "open")
		if got := direct.do(t, "ACL", "SETUSER", "poor", "on", ">p", "~*", "+get", "+ping"); got != "OK" {
			t.Fatal(got)
		}
		c := dial(t, proxy)
		c.do(t, "AUTH", "poor", "p")
		if id := <-gate.joined; id != 0 {
			t.Errorf("id %d", id)
		}
		if got := c.do(t, "PING"); got != "PONG" {
			t.Error(got)
		}
	})
	t.Run("QUIT before the password", func(t *testing.T) {
		c := dial(t, proxy)
		if got := c.do(t, "QUIT"); got != "OK" {
			t.Error(got)
		}
	})
	t.Run("no room", func(t *testing.T) {
		direct := dial(t, server.Addr)
		direct.do(t, "AUTH", "open")
		direct.do(t, "CONFIG", "SET", "maxclients", "1")
		if got := dial(t, proxy).answer(t); got != "error ERR max number of clients reached" {
			t.Error(got)
		}
	})
}
