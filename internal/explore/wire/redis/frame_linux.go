package redis

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/oversell/oversell/internal/explore/wire"
)

// Limits on input. Memory is allocated as bytes arrive, not as lengths announce.
const (
	maxBulk    = 512 << 20 // bytes of one string: Redis' default of proto-max-bulk-len
	maxMessage = 1 << 30   // bytes of a command or an answer: client-query-buffer-limit
	maxLine    = 64 << 10  // bytes of a line from a program: PROTO_INLINE_MAX_SIZE
	maxDepth   = 32        // nesting of aggregates
	maxKept    = 8 << 10   // values of an answer that are parsed; further values stay bytes
)

// A malformed is an error in the protocol, not in the connection.
type malformed string

func (e malformed) Error() string { return string(e) }

func malformedf(format string, args ...any) error { return malformed(fmt.Sprintf(format, args...)) }

const (
	errTooLong = malformed("a message or a line that is too long")
	errTooDeep = malformed("aggregates nested too deep")
	errLine    = malformed("a line does not end in CR LF")
)

type value struct {
	kind  byte    // the first byte: '+', '-', ':', '$', '*', '_', '#', ',', '(', '!', '=', '%', '~', '>'
	null  bool    // null of any kind
	text  []byte  // the text of a value without items
	items []value // in a map, keys and values alternate
	left  bool    // there are more items than these

	start, end int // position of text in the raw bytes
}

// A reader reads one side of a connection. raw holds the bytes of the current message.
type reader struct {
	from *bufio.Reader
	raw  []byte
	kept int
}

// message reads one value with its attributes. raw belongs to the caller.
func (r *reader) message() (v value, raw []byte, err error) {
	r.raw, r.kept = nil, 0
	v, err = r.value(0)
	if err != nil {
		if errors.Is(err, io.EOF) && len(r.raw) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return value{}, nil, err
	}
	v.fill(r.raw)
	return v, r.raw, nil
}

// fill sets the texts. Call it when raw is complete, since appending to raw may move it.
func (v *value) fill(raw []byte) {
	v.text = raw[v.start:v.end]
	for i := range v.items {
		v.items[i].fill(raw)
	}
}

// isError reports whether the server has refused the command.
func (v *value) isError() bool { return v.kind == '-' || v.kind == '!' }

func (v *value) isZero() bool {
	return v.kind == ':' && string(v.text) == "0" || v.kind == '#' && string(v.text) == "f"
}

func (r *reader) value(depth int) (v value, err error) {
	if depth > maxDepth {
		return v, errTooDeep
	}
	start, end, err := r.line(maxBulk)
	if err != nil {
		return v, err
	}
	if start == end {
		return v, malformed("an empty line where a value begins")
	}
	v.kind, v.start, v.end = r.raw[start], start+1, end
	switch v.kind {
	case '+', '-', ':', '#', ',', '(':
		return v, nil
	case '_':
		v.null, v.end = true, v.start
		return v, nil
	case '$', '!', '=':
		return v, r.bulk(&v)
	case '*', '~', '>', '%':
		return v, r.aggregate(&v, depth)
	case '|':
		if err := r.aggregate(&v, depth); err != nil {
			return v, err
		}
		return r.value(depth + 1) // the value that the attribute belongs to
	}
	return v, malformedf("a value that begins with the byte 0x%02x", v.kind)
}

// bulk reads a string after its first line, which is v's text.
func (r *reader) bulk(v *value) error {
	if string(r.raw[v.start:v.end]) == "?" {
		return r.streamed(v)
	}
	n, err := length(r.raw[v.start:v.end], maxBulk)
	if err != nil {
		return err
	}
	if n < 0 {
		v.null, v.end = true, v.start
		return nil
	}
	v.start, v.end, err = r.bytes(n)
	if v.kind == '=' && n >= 4 {
		v.start += 4 // skips "txt:"
	}
	return err
}

// streamed reads chunks up to an empty one (RESP3, "Streamed strings"). The text is the first chunk.
func (r *reader) streamed(v *value) error {
	v.start = v.end
	for first := true; ; first = false {
		start, end, err := r.line(maxLine)
		if err != nil {
			return err
		}
		if start == end || r.raw[start] != ';' {
			return malformed("a streamed string with something between its chunks")
		}
		n, err := length(r.raw[start+1:end], maxBulk)
		if err != nil || n < 0 {
			return malformed("the length of a chunk")
		}
		if n == 0 {
			return nil
		}
		start, end, err = r.bytes(n)
		if err != nil {
			return err
		}
		if first {
			v.start, v.end = start, end
		}
	}
}

func (r *reader) aggregate(v *value, depth int) error {
	announced := r.raw[v.start:v.end]
	endless := string(announced) == "?"
	n, err := 0, error(nil)
	if !endless {
		if n, err = length(announced, maxMessage); err != nil {
			return err
		}
	}
	v.end = v.start
	if n < 0 {
		v.null = true
		return nil
	}
	if v.kind == '%' || v.kind == '|' {
		n *= 2
	}
	for i := 0; endless || i < n; i++ {
		if endless {
			next, err := r.from.Peek(1)
			if err != nil {
				return err
			}
			if next[0] == '.' {
				_, _, err := r.line(maxLine)
				return err
			}
		}
		item, err := r.value(depth + 1)
		if err != nil {
			return err
		}
		if r.kept < maxKept {
			r.kept++
			v.items = append(v.items, item)
		} else {
			v.left = true
		}
	}
	return nil
}

// length parses the length of a string or an aggregate; null is -1.
func length(text []byte, most int) (int, error) {
	n, err := strconv.Atoi(string(text))
	if err != nil || n < -1 || n > most {
		return 0, malformedf("the length %.20q", text)
	}
	return n, nil
}

func (r *reader) line(most int) (start, end int, err error) {
	start = len(r.raw)
	for {
		part, err := r.from.ReadSlice('\n')
		r.raw = append(r.raw, part...)
		if len(r.raw)-start > most || len(r.raw) > maxMessage {
			return start, start, errTooLong
		}
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return start, start, err
		}
	}
	end = len(r.raw) - 2
	if end < start || r.raw[end] != '\r' {
		return start, start, errLine
	}
	return start, end, nil
}

func (r *reader) bytes(n int) (start, end int, err error) {
	start, end = len(r.raw), len(r.raw)+n
	if end+2 > maxMessage {
		return start, start, errTooLong
	}
	if r.raw, err = wire.ReadMore(r.from, r.raw, n+2); err != nil {
		return start, start, err
	}
	if string(r.raw[end:]) != "\r\n" {
		return start, start, errLine
	}
	return start, end, nil
}
