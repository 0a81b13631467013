package redis

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/wire"
	"github.com/oversell/oversell/internal/explore/wire/wiretest"
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

const (
	setScript = "redis.call('SET', KEYS[1], ARGV[1]); return false"
	getScript = "return redis.call('GET', KEYS[1])"
)

func TestCommands(t *testing.T) {
	server := localservertest.Redis(t)
	recorder := &wiretest.Recorder{}
	c := dial(t, wiretest.Proxy(t, recorder, Protocol(), server.Addr))
	long := strings.Repeat("é", 50)
	for _, test := range []struct {
		words                     []string // or an inline command
		text, taken, answer, came string
	}{
		{[]string{"set", "a", "1"}, "SET a 1", writing, "OK", changed},
		{[]string{"SET", "a", "2", "NX", "PX", "5000"}, "SET a 2 NX PX 5000", writing, "nil", failed},
		{[]string{"SET", "a", "2", "GET"}, "SET a 2 GET", writing, `"1"`, changed},
		{[]string{"SET", "new", "2", "NX", "GET"}, "SET new 2 NX GET", writing, "nil", changed},
		{[]string{"GETSET", "newer", "2"}, "GETSET newer 2", writing, "nil", changed},
		{[]string{"GET", "a"}, "GET a", reading, `"2"`, unchanged},
		{[]string{"GET", "none"}, "GET none", reading, "nil", failed},
		{[]string{"MGET", "a", "none"}, "MGET a none", reading, "[2 nil]", unchanged},
		{[]string{"EXISTS", "none"}, "EXISTS none", reading, "0", unchanged},
		{[]string{"SETNX", "a", "3"}, "SETNX a 3", writing, "0", failed},
		{[]string{"DEL", "none"}, "DEL none", writing, "0", failed},
		{[]string{"DEL", "new", "newer"}, "DEL new newer", writing, "2", changed},
		{[]string{"INCR", "n"}, "INCR n", writing, "1", changed},
		{[]string{"DECR", "n"}, "DECR n", writing, "0", changed},
		{[]string{"EXPIRE", "none", "3"}, "EXPIRE none 3", writing, "0", failed},
		{[]string{"PERSIST", "a"}, "PERSIST a", writing, "0", failed},
		{[]string{"PTTL", "a"}, "PTTL a", reading, "-1", unchanged},
		{[]string{"HSET", "h", "f", "v w"}, `HSET h f "v w"`, writing, "1", changed},
		{[]string{"HSET", "h", "f", "v w"}, `HSET h f "v w"`, writing, "0", changed},
		{[]string{"HSETNX", "h", "f", ""}, `HSETNX h f ""`, writing, "0", failed},
		{[]string{"HGETALL", "h"}, "HGETALL h", reading, `[f "v w"]`, unchanged},
		{[]string{"SADD", "s", "\x00\xff"}, `SADD s \x00\xff`, writing, "1", changed},
		{[]string{"SADD", "s", "\x00\xff"}, `SADD s \x00\xff`, writing, "0", failed},
		{[]string{"SMEMBERS", "s"}, "SMEMBERS s", reading, `[\x00\xff]`, unchanged},
		{[]string{"SRANDMEMBER", "s"}, "SRANDMEMBER s", writing, `"\x00\xff"`, changed},
		{[]string{"ZREM", "z", "m"}, "ZREM z m", writing, "0", failed},
		{[]string{"LPOP", "none"}, "LPOP none", writing, "nil", failed},
		{[]string{"GETDEL", "none"}, "GETDEL none", writing, "nil", failed},
		{[]string{"LPUSH", "a", "1"}, "LPUSH a 1", writing, "error WRONGTYPE Operation against a key holding the wrong kind of value", failed},
		{[]string{"RENAMENX", "a", "h"}, "RENAMENX a h", writing, "0", failed},
		{[]string{"NONSENSE", "a"}, "NONSENSE a", writing, "error ERR unknown command 'NONSENSE', with args beginning with: 'a' ", failed},
		{[]string{"SET", "l", long}, "SET l " + strings.Repeat("é", 30) + "…", writing, "OK", changed},
		{[]string{"GET", "l"}, "GET l", reading, `"` + long + `"`, unchanged},
		{[]string{"DBSIZE"}, "DBSIZE", reading, "5", unchanged},
		{[]string{"OBJECT", "encoding", "n"}, "OBJECT ENCODING n", reading, `"int"`, unchanged},
		{[]string{"MEMORY", "USAGE", "none"}, "MEMORY USAGE none", reading, "nil", failed},
		{[]string{"MEMORY", "STATS"}, "MEMORY STATS", passed, "", unchanged},
		{[]string{"PUBLISH", "c", "m"}, "PUBLISH c m", writing, "0", changed},
		{[]string{"SCRIPT", "LOAD", "return 1"}, `SCRIPT LOAD "return 1"`, passed, `"e0e1f9fabfc9d4800c877a703b823ac0578ff8db"`, unchanged},
		{[]string{"EVALSHA", "91CDeF00", "1", "a", "x"}, "EVAL 91cdef a x", writing, "error NOSCRIPT No matching script. Please use EVAL.", failed},
		{[]string{"EVAL", "return 0", "0"}, "EVAL 06d3d9", writing, "0", both},
		{[]string{"EVAL", setScript, "1", "a", "2"}, "EVAL 3200fb a 2", writing, "nil", both},
		{[]string{"EVAL", "return 1", "1", "a", "b"}, "EVAL e0e1f9 a b", writing, "1", changed},
		{[]string{"EVALSHA", "E0E1F9fabfc9d4800c877a703b823ac0578ff8db", "1", "a", "b"}, "EVAL e0e1f9 a b", writing, "1", changed},
		{[]string{"EVAL_RO", getScript, "1", "a"}, "EVAL_RO d3c21d a", reading, `"2"`, unchanged},
		{[]string{"EVAL", "return redis.error_reply('MINE x')", "0"}, "EVAL 11ce6c", writing, "error MINE x", both},
		{[]string{"FUNCTION", "load", "#!lua name=l\nredis.register_function('f', function() return 1 end)"}, "", writing, `"l"`, changed},
		{[]string{"FCALL", "f", "1", "a", "b"}, "FCALL f a b", writing, "1", changed},
		{[]string{"CONFIG", "GET", "port"}, "CONFIG GET port", passed, "", unchanged},
		{[]string{"CONFIG", "set", "maxclients", "50"}, "CONFIG SET maxclients 50", writing, "OK", changed},
		{[]string{"SCRIPT", "FLUSH"}, "SCRIPT FLUSH", writing, "OK", changed},
		{[]string{"CLIENT", "SETNAME", "x"}, "CLIENT SETNAME x", passed, "OK", unchanged},
		{[]string{"CLIENT", "UNBLOCK", "9999"}, "CLIENT UNBLOCK 9999", writing, "0", changed},
		{[]string{"AUTH", "secret"}, "AUTH ***", passed, "", failed},
		{[]string{"HELLO", "2", "AUTH", "default", "secret", "SETNAME", "x"}, "HELLO 2 AUTH default *** SETNAME x", passed, "", unchanged},
		{[]string{"WATCH", "a"}, "WATCH a", reading, "OK", unchanged},
		{[]string{"UNWATCH"}, "UNWATCH", passed, "OK", unchanged},
		{[]string{"XADD", "x", "1-1", "f", "v"}, "XADD x 1-1 f v", writing, `"1-1"`, changed},
		{[]string{"XREAD", "STREAMS", "x", "0"}, "XREAD STREAMS x 0", reading, "[[x [[1-1 [f v]]]]]", unchanged},
		{[]string{"XREAD", "BLOCK", "50", "STREAMS", "x", "0"}, "XREAD BLOCK 50 STREAMS x 0", writing, "[[x [[1-1 [f v]]]]]", unchanged},
		{[]string{"BLPOP", "a", "n", "3"}, "BLPOP a n 3", writing, "error WRONGTYPE Operation against a key holding the wrong kind of value", failed},
		{[]string{"SELECT", "2"}, "SELECT 2", passed, "OK", unchanged},
		{[]string{"GET", "a"}, "db 2: GET a", reading, "nil", failed},
		{[]string{"SELECT", "99999"}, "db 2: SELECT 99999", passed, "error ERR DB index is out of range", failed},
		{[]string{"PING"}, "db 2: PING", passed, "PONG", unchanged},
		{[]string{"SELECT", "0"}, "db 2: SELECT 0", passed, "OK", unchanged},

		{[]string{"MULTI"}, "MULTI", passed, "OK", unchanged},
		{[]string{"SET", "a", "1"}, "SET a 1", passed, "QUEUED", unchanged},
		{[]string{"DEL", "none"}, "DEL none", passed, "QUEUED", unchanged},
		{[]string{"EXEC"}, "MULTI {SET a 1; DEL none} EXEC", writing, "[OK 0]", changed},
		{[]string{"MULTI"}, "MULTI", passed, "OK", unchanged},
		{[]string{"GET", "a"}, "GET a", passed, "QUEUED", unchanged},
		{[]string{"PING"}, "PING", passed, "QUEUED", unchanged},
		{[]string{"EXEC"}, "MULTI {GET a; PING} EXEC", reading, "[1 PONG]", unchanged},
		{[]string{"MULTI"}, "MULTI", passed, "OK", unchanged},
		{[]string{"SETNX", "a", "1"}, "SETNX a 1", passed, "QUEUED", unchanged},
		{[]string{"BLPOP", "none", "1"}, "BLPOP none 1", passed, "QUEUED", unchanged},
		{[]string{"LPUSH", "a", "1"}, "LPUSH a 1", passed, "QUEUED", unchanged},
		{[]string{"EXEC"}, "MULTI {SETNX a 1; BLPOP none 1; LPUSH a 1} EXEC", writing, "[0 nil error WRONGTYPE Operation against a key holding the wrong kind of value]", failed},
		{[]string{"MULTI"}, "MULTI", passed, "OK", unchanged},
		{[]string{"GET"}, "GET", passed, "error ERR wrong number of arguments for 'get' command", failed},
		{[]string{"SET", "a", "1"}, "SET a 1", passed, "QUEUED", unchanged},
		{[]string{"EXEC"}, "MULTI {GET; SET a 1} EXEC", writing, "error EXECABORT Transaction discarded because of previous errors.", failed},
		{[]string{"MULTI"}, "MULTI", passed, "OK", unchanged},
		{[]string{"WATCH", "a"}, "WATCH a", passed, "error ERR WATCH inside MULTI is not allowed", failed},
		{[]string{"DISCARD"}, "DISCARD", passed, "OK", unchanged},
		{[]string{"EXEC"}, "EXEC", reading, "error ERR EXEC without MULTI", failed},
		{[]string{"MULTI", "x"}, "MULTI x", passed, "error ERR wrong number of arguments for 'multi' command", failed},
		{[]string{"SET", "a", "1"}, "SET a 1", writing, "OK", changed},

		{[]string{"HELLO", "3"}, "HELLO 3", passed, "", unchanged},
		{[]string{"HGETALL", "h"}, "HGETALL h", reading, `{f: "v w"}`, unchanged},
		{[]string{"GET", "none"}, "GET none", reading, "nil", failed},
		{[]string{"EVAL", "redis.setresp(3); return false", "0"}, "EVAL 7ccb6b", writing, "false", both},
		{[]string{"SUBSCRIBE", "c"}, "SUBSCRIBE c", passed, "[subscribe c 1]", unchanged},
		{[]string{"RESET"}, "RESET", passed, "RESET", unchanged},
	} {
		answer := c.do(t, test.words...)
		commands := recorder.Commands()
		o := commands[len(commands)-1]
		got := fmt.Sprint(o.Text, " | ", taken(o), " | ", o.Answer.Text, " | ", came(o))
		if test.text == "" {
			test.text = o.Text
		}
		if test.answer == "" {
			test.answer = answer
		}
		if want := fmt.Sprint(test.text, " | ", test.taken, " | ", cut(test.answer), " | ", test.came); got != want || answer != o.Answer.Text {
			t.Errorf("%q\n got %s\nwant %s", test.words, got, want)
		}
		if o.Silent || o.Named || o.Ends || len(o.Answer.Made) > 0 {
			t.Errorf("%q: %+v", test.words, o)
		}
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

// TestTimeoutByEvent: the event timeout ends a wait. The command's own clock does not.
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

// A joins is a recorder that reports the ids.
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
	if err := direct.ConfigSet(t.Context(), "requirepass", "open").Err(); err != nil {
		t.Fatal(err)
	}
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
