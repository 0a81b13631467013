package redis

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/explore/wire"
	"github.com/oversell/oversell/internal/explore/wire/wiretest"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

const deadline = 20 * time.Second

const askID = "*2\r\n$6\r\nCLIENT\r\n$2\r\nID\r\n"

// transparent runs a function through the gate, and compares the bytes on both sides.
func transparent(t *testing.T, server string, use func(address string)) {
	t.Helper()
	b := wiretest.Through(t, wire.Open{}, Protocol(), server)
	use(b.Program.Address)
	program, served := b.Said(t)
	for i, s := range served {
		up, asked := bytes.CutPrefix(s[0], []byte(askID))
		id, down, answered := bytes.Cut(s[1], []byte("\r\n"))
		if !asked || !answered || id[0] != ':' {
			t.Fatalf("no CLIENT ID at first: %.40q, %.40q", s[0], s[1])
		}
		served[i] = [2][]byte{up, down}
	}
	order := func(a, b [2][]byte) int { return cmp.Or(bytes.Compare(a[0], b[0]), bytes.Compare(a[1], b[1])) }
	slices.SortFunc(program, order)
	slices.SortFunc(served, order)
	for i := range program {
		for side, name := range []string{"to the server", "to the program"} {
			if d := wiretest.Difference(served[i][side], program[i][side]); d != "" {
				t.Errorf("%s: %s", name, d)
			}
		}
	}
}

func TestTransparentRedis(t *testing.T) {
	server := localservertest.Redis(t)
	direct := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer direct.Close()
	for protocol, size := range map[int]int{2: 1 << 20, 3: 20 << 20} {
		t.Run(fmt.Sprintf("RESP%d/large", protocol), func(t *testing.T) {
			transparent(t, server.Addr, func(address string) {
				c := redis.NewClient(&redis.Options{
					Addr: address, Protocol: protocol, PoolSize: 2,
					MaxRetries: -1, ReadTimeout: deadline, WriteTimeout: deadline,
				})
				defer c.Close()
				large(t, c, size)
			})
		})
	}
	t.Run("by hand", func(t *testing.T) {
		transparent(t, server.Addr, func(address string) { byHand(t, address) })
	})
	t.Run("RESP3/channels", func(t *testing.T) {
		transparent(t, server.Addr, func(address string) { messages(t, address, direct) })
	})
	t.Run("pushes of tracking", func(t *testing.T) {
		transparent(t, server.Addr, func(address string) { tracking(t, address, direct) })
	})
	t.Run("random pipelines", func(t *testing.T) {
		transparent(t, server.Addr, func(address string) { random(t, address) })
	})
	t.Run("timeouts", func(t *testing.T) {
		transparent(t, server.Addr, func(address string) {
			c := dial(t, address)
			defer c.Close()
			direct.RPush(t.Context(), "ready", "x")
			c.do(t, "BLPOP", "ready", "12.5")
			c.do(t, "WAIT", "0", "100")
		}) // this gate does not call Let, so the command keeps its limit
	})
}

// want fails the test if a go-redis command has failed, except with redis.Nil.
func want(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Error(err)
	}
}

func large(t *testing.T, c *redis.Client, size int) {
	value := strings.Repeat("0123456789abcde\n", size/16)
	want(t, c.Set(t.Context(), "large", value, 0).Err())
	got, err := c.Get(t.Context(), "large").Result()
	if want(t, err); got != value {
		t.Errorf("%d bytes became %d others", len(value), len(got))
	}
}

func until(t *testing.T, direct *redis.Client, what string, ok func(list string) bool) {
	t.Helper()
	for end := time.Now().Add(deadline); !ok(direct.ClientList(t.Context()).Val()); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

// A client writes RESP directly to a connection.
type client struct {
	net.Conn
	from *reader
}

func dial(t *testing.T, address string) *client {
	t.Helper()
	c, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(deadline))
	return &client{c, readerOf(c)}
}

func (c *client) send(t *testing.T, raw string) {
	t.Helper()
	if _, err := io.WriteString(c, raw); err != nil {
		t.Fatal(err)
	}
}

func (c *client) answer(t *testing.T) string {
	t.Helper()
	v, _, err := c.from.message()
	require.NoError(t, err)
	return answerText(&v)
}

func (c *client) do(t *testing.T, words ...string) string {
	t.Helper()
	c.send(t, resp(words...))
	return c.answer(t)
}

func resp(words ...string) string {
	var args [][]byte
	for _, w := range words {
		args = append(args, []byte(w))
	}
	return string(encode(args))
}

func (c *client) expect(t *testing.T, answers ...string) {
	t.Helper()
	for _, want := range answers {
		if got := c.answer(t); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func byHand(t *testing.T, address string) {
	c := dial(t, address)
	c.send(t, "\r\n*0\r\n*-1\r\nset inline \"a \\x41\"\r\nGET inline\n")
	c.expect(t, "OK", `"a A"`)
	c.send(t, "SUBSCRIBE a b a\r\nUNSUBSCRIBE\r\nUNSUBSCRIBE\r\nPING\r\n")
	c.expect(t, "[subscribe a 1]", "[subscribe b 2]", "[subscribe a 2]")
	for range 2 { // Redis confirms a and b in either order
		if got := c.answer(t); !strings.HasPrefix(got, "[unsubscribe ") {
			t.Error(got)
		}
	}
	c.expect(t, "[unsubscribe nil 0]", "PONG")
	c.send(t, "HELLO 3\r\nMULTI\r\nMULTI\r\nWATCH a\r\nSELECT 3\r\nHELLO 2\r\nGET absent\r\nEXEC\r\nRESET\r\nEXEC\r\nDISCARD\r\nSUBSCRIBE\r\nnonsense a\r\n")
	if got := c.answer(t); !strings.HasPrefix(got, "{server: redis version: ") {
		t.Error(got)
	}
	c.expect(t, "OK", "error ERR MULTI calls can not be nested", "error ERR WATCH inside MULTI is not allowed", "QUEUED", "QUEUED", "QUEUED")
	if got := c.answer(t); !strings.HasPrefix(got, "[OK [server redis") || !strings.Contains(got, "…") {
		t.Error(got)
	}
	c.expect(t, "RESET", "error ERR EXEC without MULTI", "error ERR DISCARD without MULTI",
		"error ERR wrong number of arguments for 'subscribe' command", "error ERR unknown command 'nonsense', with args beginning with: 'a' ")
	c.send(t, "HELLO 3\r\nSUBSCRIBE a b\r\nGET absent\r\nUNSUBSCRIBE a\r\nSSUBSCRIBE s\r\nPUNSUBSCRIBE\r\n")
	c.answer(t)
	c.expect(t, "[subscribe a 1]", "[subscribe b 2]", "nil", "[unsubscribe a 1]", "[ssubscribe s 1]", "[punsubscribe nil 1]")
	_ = c.Close()
}

// messages: pushes arrive between answers.
func messages(t *testing.T, address string, direct *redis.Client) {
	c := dial(t, address)
	defer c.Close()
	c.do(t, "HELLO", "3")
	c.send(t, resp("SUBSCRIBE", "a", "b")+resp("PSUBSCRIBE", "a*")+resp("SSUBSCRIBE", "s"))
	c.expect(t, "[subscribe a 1]", "[subscribe b 2]", "[psubscribe a* 3]", "[ssubscribe s 1]")
	for i := range 50 {
		want(t, direct.Publish(t.Context(), "a", i).Err())
		c.expect(t, fmt.Sprintf("[message a %d]", i), fmt.Sprintf("[pmessage a* a %d]", i))
		want(t, direct.SPublish(t.Context(), "s", i).Err())
		c.expect(t, fmt.Sprintf("[smessage s %d]", i))
		if got, want := c.do(t, "SET", "m", fmt.Sprint(i)), "OK"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	c.send(t, resp("UNSUBSCRIBE", "a", "b")+resp("PUNSUBSCRIBE")+resp("SUNSUBSCRIBE")+resp("SUNSUBSCRIBE"))
	c.expect(t, "[unsubscribe a 2]", "[unsubscribe b 1]", "[punsubscribe a* 0]", "[sunsubscribe s 0]", "[sunsubscribe nil 0]")
}

// tracking: the server reports a changed key by a push.
func tracking(t *testing.T, address string, direct *redis.Client) {
	c := dial(t, address)
	defer c.Close()
	c.do(t, "HELLO", "3")
	c.do(t, "CLIENT", "TRACKING", "ON")
	for i := range 20 {
		c.do(t, "GET", "tracked")
		direct.Set(t.Context(), "tracked", i, 0)
		c.expect(t, "[invalidate [tracked]]")
	}
}

func random(t *testing.T, address string) {
	c := dial(t, address)
	defer c.Close()
	r := rand.New(rand.NewPCG(1, 2))
	var all strings.Builder
	n := 0
	for range 500 {
		switch r.IntN(5) {
		case 0:
			all.WriteString("MULTI\r\nINCR n\r\nEXEC\r\n")
			n += 3
		case 1:
			all.WriteString(resp("SET", "k", strings.Repeat("x", r.IntN(40_000))))
			n++
		case 2:
			all.WriteString("\r\nGET k\r\n")
			n++
		case 3:
			all.WriteString(resp("EVAL", "return {KEYS[1], {1, false}}", "1", "a"))
			n++
		case 4:
			all.WriteString(resp("HELLO", fmt.Sprint(2+r.IntN(2))))
			n++
		}
	}
	var both sync.WaitGroup
	both.Go(func() {
		for rest := all.String(); len(rest) > 0; {
			k := min(len(rest), 1+r.IntN(30_000))
			if _, err := io.WriteString(c, rest[:k]); err != nil {
				t.Error(err)
				return
			}
			rest = rest[k:]
		}
	})
	for range n {
		c.answer(t)
	}
	both.Wait()
}

// TestOrder: bytes that follow an answer or a push do not overtake it. Neither does the end of the
// connection.
func TestOrder(t *testing.T) {
	server := localservertest.Redis(t)
	proxy := wiretest.Proxy(t, wire.Open{}, Protocol(), server.Addr)
	for range 200 {
		c := dial(t, proxy)
		c.send(t, "HELLO 3\r\nCLIENT TRACKING ON BCAST\r\n")
		c.answer(t)
		c.expect(t, "OK")
		c.send(t, "SET k 1\r\nQUIT\r\n")
		c.expect(t, "OK", "[invalidate [k]]", "OK")
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Fatalf("after QUIT: %v", err)
		}
	}
}
