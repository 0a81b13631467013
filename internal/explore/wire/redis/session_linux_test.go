package redis

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/explore/wire"
	"github.com/oversell/oversell/internal/require"
)

// pair returns a session whose program and server have sent all their bytes.
func pair(program, server string) *session {
	s := newSession(
		&wire.Socket{R: bufio.NewReader(strings.NewReader(program))},
		&wire.Socket{R: bufio.NewReader(strings.NewReader(server))},
	)
	s.refusals = io.Discard
	return s
}

func next(t *testing.T, s *session) *wire.Command {
	t.Helper()
	o, err := s.Next()
	require.NoError(t, err)
	return o
}

func TestRefused(t *testing.T) {
	for program, why := range map[string]string{
		"\x16\x03\x01\x00\xa5":            "the program asks for TLS at redis (rediss://); use redis:// for the test",
		"monitor\r\n":                     "MONITOR",
		"PSYNC ? -1\r\n":                  "PSYNC",
		"script debug yes\r\n":            "SCRIPT DEBUG",
		"MULTI\r\nSUBSCRIBE a\r\n":        "SUBSCRIBE a within MULTI",
		"MULTI\r\nclient reply off\r\n":   "CLIENT REPLY off within MULTI",
		"*1\r\n$-1\r\n":                   "Protocol error: invalid bulk length",
		"POST / HTTP/1.1\r\n*0\r\n*x\r\n": "Protocol error",
	} {
		var told bytes.Buffer
		s := pair(program, "")
		s.refusals = &told
		var err error
		for err == nil {
			_, err = s.Next()
		}
		var refused *wire.Refused
		if !errors.As(err, &refused) || !strings.Contains(refused.Why, why) || told.String() != "-ERR "+refused.Why+"\r\n" {
			t.Errorf("%q: %v, told %q; want %q", program, err, told.String(), why)
		}
	}
}

func TestRawStays(t *testing.T) {
	for _, raw := range requestSeeds {
		s := pair(raw, "")
		var got []byte
		var err error
		for err == nil {
			var o *wire.Command
			if o, err = s.Next(); err == nil {
				got = append(got, o.Raw...)
			}
		}
		rewritten := strings.HasPrefix(raw, "CLIENT REPLY")
		if same := string(got) == raw; same == rewritten && errors.Is(err, io.EOF) {
			t.Errorf("%q became %q", raw, got)
		}
	}
}

func TestTimeouts(t *testing.T) {
	for sent, want := range map[string]string{
		"*3\r\n$5\r\nblpop\r\n$1\r\nq\r\n$1\r\n5\r\n":                   "*3\r\n$5\r\nblpop\r\n$1\r\nq\r\n$1\r\n0\r\n",
		"\r\n*4\r\n$6\r\nBLMPOP\r\n$3\r\n0.5\r\n$1\r\n1\r\n$1\r\nq\r\n": "\r\n*4\r\n$6\r\nBLMPOP\r\n$1\r\n0\r\n$1\r\n1\r\n$1\r\nq\r\n",
		"BRPOP a b 1e1\r\n":                          "*4\r\n$5\r\nBRPOP\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\n0\r\n",
		"XREAD COUNT 1 BLOCK 70 STREAMS BLOCK 9\r\n": "*8\r\n$5\r\nXREAD\r\n$5\r\nCOUNT\r\n$1\r\n1\r\n$5\r\nBLOCK\r\n$1\r\n0\r\n$7\r\nSTREAMS\r\n$5\r\nBLOCK\r\n$1\r\n9\r\n",
		"XREADGROUP GROUP block c BLOCK 5 STREAMS s >\r\n": string(encode([][]byte{
			[]byte("XREADGROUP"), []byte("GROUP"), []byte("block"), []byte("c"), []byte("BLOCK"), []byte("0"), []byte("STREAMS"), []byte("s"), []byte(">"),
		})),
		"WAIT 1 100\r\n": "*3\r\n$4\r\nWAIT\r\n$1\r\n1\r\n$1\r\n0\r\n",
		// The session does not change a command without a limit, one that Redis refuses, or one that
		// does not wait.
		"BLPOP q 0\r\n": "BLPOP q 0\r\n", "BLPOP q 0.0\r\n": "BLPOP q 0.0\r\n", "BLPOP q x\r\n": "BLPOP q x\r\n", "BLPOP q -1\r\n": "BLPOP q -1\r\n",
		"BLPOP q 1e300\r\n": "BLPOP q 1e300\r\n", "BLPOP\r\n": "BLPOP\r\n", "WAIT 1\r\n": "WAIT 1\r\n", "XREAD BLOCK\r\n": "XREAD BLOCK\r\n",
		"XREAD BLOCK 1.5 STREAMS s 0\r\n": "XREAD BLOCK 1.5 STREAMS s 0\r\n", "LPOP q 5\r\n": "LPOP q 5\r\n",
	} {
		o := next(t, pair(sent, ""))
		o.Hold()
		o.Let()
		if string(o.Raw) != want {
			t.Errorf("%q became %q, want %q", sent, o.Raw, want)
		}
	}
	s := pair("MULTI\r\nBLPOP q 5\r\nEXEC\r\nXREAD STREAMS s 0\r\n", "")
	for range 4 {
		if o := next(t, s); o.Limit != 0 || o.Unlimited != nil || strings.Contains(string(o.Raw), "q 0") {
			t.Errorf("%s does not block", o.Text)
		}
	}
}

// TestLimits checks the limit of each blocking command, in seconds or milliseconds.
func TestLimits(t *testing.T) {
	for sent, want := range map[string]time.Duration{
		"BLPOP q 1": time.Second, "BLPOP q 0.5": 500 * time.Millisecond, "XREAD BLOCK 500 STREAMS s $": 500 * time.Millisecond,
		"WAIT 1 20": 20 * time.Millisecond, "BLPOP q 0": wire.Endless, "XREAD BLOCK 0 STREAMS s $": wire.Endless,
		"BLPOP q 1e-12": 1, "BLPOP q 1e12": math.MaxInt64, "BLPOP q x": 0, "BLPOP q -1": 0, "LPOP q 5": 0, "XREAD STREAMS s $": 0,
	} {
		o := next(t, pair(sent+"\r\n", ""))
		if o.Limit != want {
			t.Errorf("%s: %s, want %s", sent, o.Limit, want)
		}
	}
}

// TestPushes: the session must not take a push for an answer, or an answer for that of another command.
func TestPushes(t *testing.T) {
	const (
		subscribed = "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"
		second     = "*3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n"
		message    = "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n"
		gone       = "*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:1\r\n"
		goneToo    = "*3\r\n$11\r\nunsubscribe\r\n$1\r\nb\r\n:0\r\n"
		goneNone   = "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n"
		hello3     = "%1\r\n+proto\r\n:3\r\n"
	)
	pushed := func(s string) string { return ">" + s[1:] }
	for _, test := range []struct{ name, program, server, want string }{
		{"an array that looks like a message", "LRANGE a 0 -1\r\n", message, "ends"},
		{"RESP2", "SUBSCRIBE a b\r\nPING\r\nUNSUBSCRIBE\r\nLRANGE a 0 -1\r\n", subscribed + second + message + "*2\r\n$4\r\npong\r\n$0\r\n\r\n" + message + gone + goneToo + message, "part ends push ends push part ends ends"},
		{"nothing to leave", "UNSUBSCRIBE\r\nPING\r\n", goneNone + "+PONG\r\n", "ends ends"},
		{"refused", "SUBSCRIBE a b\r\nPING\r\n", "-NOPERM no\r\n+PONG\r\n", "ends ends"},
		{"RESP3", "HELLO 3\r\nSUBSCRIBE a b\r\nLRANGE a 0 -1\r\n", hello3 + pushed(message) + pushed(subscribed) + pushed(message) + pushed(second) + pushed(message) + message, "ends push part push ends push ends"},
		{"RESP3 refused", "HELLO 3\r\nLRANGE a 0 -1\r\n", "-NOPROTO no\r\n" + message, "ends ends"},
		{"another's confirmation", "HELLO 3\r\nGET a\r\n", hello3 + pushed(gone) + "$1\r\nx\r\n", "ends push ends"},
		{"RESET", "HELLO 3\r\nSUBSCRIBE a\r\nRESET\r\nLRANGE a 0 -1\r\n", hello3 + pushed(subscribed) + "+RESET\r\n" + message, "ends ends ends ends"},
		{"HELLO within MULTI", "MULTI\r\nHELLO 3\r\nEXEC\r\nSUBSCRIBE a\r\nLRANGE a 0 -1\r\n", "+OK\r\n+QUEUED\r\n*1\r\n" + hello3 + pushed(subscribed) + message, "ends ends ends ends ends"},
	} {
		s := pair(test.program, test.server)
		var got []string
		current := next(t, s)
		for {
			m, err := s.Receive(current)
			if err != nil {
				break
			}
			switch {
			case m.Push:
				got = append(got, "push")
			case m.Ends:
				got = append(got, "ends")
				if current, err = s.Next(); err != nil {
					current = nil
				}
			default:
				got = append(got, "part")
			}
		}
		if got := strings.Join(got, " "); got != test.want || len(s.asked) > 0 {
			t.Errorf("%s: %s, %d not answered; want %s", test.name, got, len(s.asked), test.want)
		}
	}
}

func FuzzSession(f *testing.F) {
	for _, p := range append(requestSeeds, strings.Join(requestSeeds[:12], "")) {
		f.Add([]byte(p), []byte(strings.Join(answerSeeds, "")))
	}
	f.Add([]byte("SUBSCRIBE a b\r\nUNSUBSCRIBE\r\n"), []byte("*3\r\n+subscribe\r\n+a\r\n:1\r\n*3\r\n+subscribe\r\n+b\r\n:2\r\n*3\r\n+message\r\n+a\r\n+b\r\n*1\r\n+unsubscribe\r\n"))
	f.Add([]byte("MULTI\r\nSET a 1\r\nSELECT 2\r\nEXEC\r\nGET a\r\n"), []byte("+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n-ERR\r\n$-1\r\n"))
	f.Fuzz(func(t *testing.T, program, server []byte) {
		s := pair(string(program), string(server))
		for {
			o, err := s.Next()
			if err != nil {
				return
			}
			if strings.ContainsAny(o.Text, "\r\n") {
				t.Errorf("%q is not one line", o.Text)
			}
			for ends := false; !ends; {
				m, err := s.Receive(o)
				if err != nil {
					break
				}
				ends = m.Ends
			}
		}
	})
}
