package redis

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// maxArguments is the maximum number of arguments in Redis before version 7.
const maxArguments = 1 << 20

// A request is a command as the program sent it.
type request struct {
	raw  []byte   // includes the empty commands before it, which Redis does not answer
	args [][]byte // slices of raw, except for an inline command
	at   []int    // where each argument begins in raw, including the line with its length; nil for an inline command
}

// request reads the next command that has a name. The error is io.EOF if there is none.
func (r *reader) request() (request, error) {
	r.raw = nil
	for {
		first, err := r.from.Peek(1)
		if err != nil {
			return request{}, err
		}
		var q request
		if first[0] == '*' {
			q, err = r.multibulk()
		} else {
			q, err = r.inline()
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil || len(q.args) > 0 {
			q.raw = r.raw
			return q, err
		}
		if len(r.raw) > maxLine {
			return request{}, errTooLong // too many empty commands
		}
	}
}

// Words returns the words of a command as the program sent it; nil if raw is not a command.
func Words(raw []byte) (words []string) {
	r := reader{from: bufio.NewReader(bytes.NewReader(raw))}
	q, err := r.request()
	if err != nil {
		return nil
	}
	for _, a := range q.args {
		words = append(words, string(a))
	}
	return words
}

func (r *reader) multibulk() (q request, err error) {
	start, end, err := r.line(maxLine)
	if err != nil {
		return q, err
	}
	n, err := strconv.Atoi(string(r.raw[start+1 : end]))
	if err != nil || n > maxArguments {
		return q, malformedf("invalid multibulk length %.20q: at most %d", r.raw[start+1:end], maxArguments)
	}
	type place struct{ at, start, end int }
	var places []place
	for range n {
		start, end, err := r.line(maxLine)
		if err != nil {
			return q, err
		}
		if start == end || r.raw[start] != '$' {
			return q, malformed("expected '$'")
		}
		size, err := length(r.raw[start+1:end], maxBulk)
		if err != nil || size < 0 {
			return q, malformedf("invalid bulk length %.20q", r.raw[start+1:end])
		}
		p := place{at: start}
		if p.start, p.end, err = r.bytes(size); err != nil {
			return q, err
		}
		places = append(places, p)
	}
	for _, p := range places {
		q.args, q.at = append(q.args, r.raw[p.start:p.end]), append(q.at, p.at)
	}
	return q, nil
}

// inline reads a line of words, as people type it.
func (r *reader) inline() (q request, err error) {
	start, end, err := r.line(maxLine)
	if errors.Is(err, errLine) { // LF alone is accepted
		end, err = len(r.raw)-1, nil
	}
	if err != nil {
		return q, err
	}
	words, ok := split(r.raw[start:end])
	if !ok {
		return q, malformed("unbalanced quotes in request")
	}
	q.args = words
	return q, nil
}

func (q *request) with(i int, argument string) []byte {
	if q.at == nil {
		args := append([][]byte(nil), q.args...)
		args[i] = []byte(argument)
		return encode(args)
	}
	end := len(q.raw)
	if i+1 < len(q.at) {
		end = q.at[i+1]
	}
	raw := append([]byte(nil), q.raw[:q.at[i]]...)
	raw = appendBulk(raw, []byte(argument))
	return append(raw, q.raw[end:]...)
}

func encode(args [][]byte) []byte {
	raw := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		raw = appendBulk(raw, a)
	}
	return raw
}

func appendBulk(raw, text []byte) []byte {
	raw = fmt.Appendf(raw, "$%d\r\n", len(text))
	return append(append(raw, text...), "\r\n"...)
}

// inlineWord matches the first word of an inline command, as sdssplitargs of Redis reads it. A word may end
// with a quotation, which only a space may follow: "a\x01\n" and 'a\'b' are words. The groups are the part
// without quotes, and the content of the quotation.
var inlineWord = regexp.MustCompile(`(?s)^([^ \t-\r"']*)(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\+'|\\+[^'\\])*)')?(?:[ \t-\r]|$)`)

// escaped matches a character that is escaped in double quotes.
var escaped = regexp.MustCompile(`(?s)\\x[0-9a-fA-F]{2}|\\.`)

// split splits an inline command, and reports whether the quotes are balanced.
func split(line []byte) (words [][]byte, ok bool) {
	for {
		if line = bytes.TrimLeft(line, " \t\n\v\f\r"); len(line) == 0 {
			return words, true
		}
		m := inlineWord.FindSubmatch(line)
		if m == nil {
			return nil, false
		}
		word := append([]byte{}, m[1]...)
		word = append(word, escaped.ReplaceAllFunc(m[2], unescaped)...)
		words = append(words, append(word, bytes.ReplaceAll(m[3], []byte(`\'`), []byte("'"))...))
		line = line[len(m[0]):]
	}
}

func unescaped(text []byte) []byte {
	if n, err := strconv.ParseUint(string(text[2:]), 16, 8); err == nil {
		return []byte{byte(n)}
	}
	if at := strings.IndexByte("nrtba", text[1]); at >= 0 {
		return []byte{"\n\r\t\b\a"[at]}
	}
	return text[1:]
}
