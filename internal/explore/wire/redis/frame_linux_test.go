package redis

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
)

var answerSeeds = []string{
	"+OK\r\n", "-ERR no\r\n", ":-12\r\n", "$5\r\nhello\r\n", "$0\r\n\r\n", "$-1\r\n", "*-1\r\n", "*0\r\n", "_\r\n",
	"#t\r\n", "#f\r\n", ",3.25\r\n", ",inf\r\n", "(3492890328409238509324850943850943825024385\r\n",
	"!21\r\nSYNTAX invalid syntax\r\n", "=15\r\ntxt:Some string\r\n",
	"*3\r\n:1\r\n*1\r\n+a\r\n$1\r\nb\r\n", "%2\r\n+a\r\n:1\r\n+b\r\n:2\r\n", "~2\r\n+a\r\n+b\r\n",
	">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nhi\r\n", ">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n",
	"|1\r\n+ttl\r\n:3600\r\n$1\r\nx\r\n", "*2\r\n:1\r\n|1\r\n+a\r\n:2\r\n:3\r\n",
	"$?\r\n;4\r\nHell\r\n;1\r\no\r\n;0\r\n", "*?\r\n:1\r\n:2\r\n.\r\n", "%?\r\n+a\r\n:1\r\n.\r\n",
}

var requestSeeds = []string{
	"*2\r\n$3\r\nGET\r\n$1\r\na\r\n", "PING\r\n", "SET a \"b\\x01\\n c\" 'd\\'e'\n", "\r\n\r\n*0\r\n*-1\r\n*1\r\n$4\r\nPING\r\n",
	"*1\r\n$5\r\nMULTI\r\n*1\r\n$4\r\nEXEC\r\n", "SUBSCRIBE a b\r\nUNSUBSCRIBE\r\n", "CLIENT REPLY SKIP\r\nGET a\r\n",
	"*3\r\n$5\r\nBLPOP\r\n$1\r\nq\r\n$1\r\n5\r\n", "BLPOP q 5\r\n", "XREAD BLOCK 10 STREAMS s $\r\n", "XREAD BLOCK\r\n", "WAIT\r\n", "BLPOP\r\n",
	"EVAL\r\n", "EVALSHA ab\r\n", "HELLO 3 AUTH\r\n", "SELECT 3\r\nGET a\r\n", "MONITOR\r\n", "\x16\x03\x01",
}

func answerOf(raw string) (value, []byte, error) {
	r := reader{from: bufio.NewReader(strings.NewReader(raw))}
	return r.message()
}

func TestValues(t *testing.T) {
	for raw, want := range map[string]string{
		"+OK\r\n": "OK", "-ERR no\r\n": "error ERR no", ":-12\r\n": "-12", "$5\r\nhe\x00lo\r\n": `"he\x00lo"`,
		"$-1\r\n": "nil", "*-1\r\n": "nil", "_\r\n": "nil", "*0\r\n": "[]", "#t\r\n": "true", "#f\r\n": "false",
		",3.25\r\n": "3.25", "(34928903284092385093\r\n": "34928903284092385093",
		"!21\r\nSYNTAX invalid syntax\r\n": "error SYNTAX invalid syntax", "=15\r\ntxt:Some string\r\n": `"Some string"`,
		"*3\r\n:1\r\n*1\r\n+a\r\n$3\r\nb c\r\n": `[1 [a] "b c"]`, "%2\r\n+a\r\n:1\r\n+b\r\n:2\r\n": "{a: 1 b: 2}",
		"~2\r\n+a\r\n+b\r\n": "[a b]", "|1\r\n+ttl\r\n:3600\r\n$1\r\nx\r\n": `"x"`,
		"$?\r\n;4\r\nHell\r\n;1\r\no\r\n;0\r\n": `"Hell"`, "*?\r\n:1\r\n:2\r\n.\r\n": "[1 2]",
	} {
		v, got, err := answerOf(raw + "+next\r\n")
		if err != nil || string(got) != raw || answerText(&v) != want {
			t.Errorf("%q: %s, read %q, %v; want %s", raw, answerText(&v), got, err, want)
		}
	}
}

// TestMalformed: malformed input is detected.
func TestMalformed(t *testing.T) {
	for _, raw := range []string{
		"\r\n", "?\r\n", "$5\r\nhelloxx", "$-2\r\n", "$x\r\n", "$600000000\r\n", "*9999999999999\r\n", "+OK\n",
		"$?\r\n+a\r\n", "$?\r\n;-1\r\n", strings.Repeat("*1\r\n", 40) + ":1\r\n", strings.Repeat("|0\r\n", 40) + ":1\r\n",
	} {
		var wrong malformed
		if _, _, err := answerOf(raw); !errors.As(err, &wrong) {
			t.Errorf("%q: %v; want it malformed", raw, err)
		}
	}
	for _, raw := range []string{"$5\r\nhel", "*2\r\n:1\r\n", "+OK", "*?\r\n"} {
		if _, _, err := answerOf(raw); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%q: %v; want io.ErrUnexpectedEOF", raw, err)
		}
	}
	for _, raw := range []string{"*x\r\n", "*1\r\n+a\r\n", "*1\r\n$-1\r\n", "*2000000\r\n", `GET "a` + "\r\n", `GET "a"b` + "\r\n", strings.Repeat("a", 70_000) + "\r\n", strings.Repeat("\r\n", 40_000)} {
		r := reader{from: bufio.NewReader(strings.NewReader(raw))}
		var wrong malformed
		if _, err := r.request(); !errors.As(err, &wrong) {
			t.Errorf("%.20q: %v; want it malformed", raw, err)
		}
	}
}

func TestInline(t *testing.T) {
	for line, want := range map[string]string{
		"SET a b\r\n": "SET|a|b", "  get\ta \n": "get|a", `set a "b \"c\" \x41\n"` + "\r\n": "set|a|b \"c\" A\n",
		`set 'it\'s' ""` + "\r\n": "set|it's|", `a"b c"` + "\r\n": "ab c", `a "\xzz\`: "", `"\x4"` + "\n": "x4",
	} {
		r := reader{from: bufio.NewReader(strings.NewReader(line))}
		q, err := r.request()
		if got := string(bytes.Join(q.args, []byte("|"))); got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v; want %q", line, got, err, want)
		}
	}
}

// TestAnnouncedIsNotAllocated: an announced length allocates nothing before the bytes arrive.
func TestAnnouncedIsNotAllocated(t *testing.T) {
	for _, raw := range []string{"$536870912\r\nabc", "*1073741824\r\n:1\r\n", "%400000000\r\n", "=500000000\r\ntxt:"} {
		if n := allocated(func() { _, _, _ = answerOf(raw) }); n > 1<<20 {
			t.Errorf("%q: %d bytes allocated", raw, n)
		}
	}
	for _, raw := range []string{"*1048576\r\n$1\r\na\r\n", "*1\r\n$536870912\r\nabc"} {
		if n := allocated(func() {
			r := reader{from: bufio.NewReader(strings.NewReader(raw))}
			_, _ = r.request()
		}); n > 1<<20 {
			t.Errorf("%q: %d bytes allocated", raw, n)
		}
	}
}

func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// FuzzAnswers: no input causes a panic, and the bytes of each parsed answer are those of the input.
func FuzzAnswers(f *testing.F) {
	for _, s := range append(answerSeeds, strings.Join(answerSeeds, "")) {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r := reader{from: bufio.NewReaderSize(bytes.NewReader(raw), 16)}
		var all []byte
		for {
			v, got, err := r.message()
			if err != nil {
				break
			}
			if text := answerText(&v); strings.ContainsAny(text, "\r\n") {
				t.Errorf("%q is not one line", text)
			}
			all = append(all, got...)
		}
		if !bytes.HasPrefix(raw, all) {
			t.Errorf("%q was read as %q", raw, all)
		}
	})
}

func readerOf(from io.Reader) *reader { return &reader{from: bufio.NewReader(from)} }
