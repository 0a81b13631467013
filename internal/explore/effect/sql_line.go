package effect

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// longestLine and longestValue are the maximum shown lengths, in bytes.
const (
	longestLine  = 2000
	longestValue = 100
)

// Line returns the statement for people, in one line. Each run of white space becomes one space, and so
// does each comment, since a comment may contain the id of a request. The values, already quoted,
// replace ? or $1. A placeholder without a value stays.
func Line(sql string, d Dialect, values ...string) string {
	return line(sql, longestLine, d, values)
}

// Whole returns a function that returns the statement like Line, but with up to 1 MiB of its text. It
// returns nil if Line returns the whole statement.
func Whole(sql string, d Dialect, values ...string) func() string {
	if len(sql) <= longestLine {
		return nil
	}
	return func() string { return line(sql, longest, d, values) }
}

// line returns the statement for people. It reads at most the given number of bytes.
func line(sql string, most int, d Dialect, values []string) string {
	start := sql[:min(len(sql), most)]
	all, rest := tokens(start, d, d == MySQL)
	if rest == odd && len(all) == 0 {
		return cutLine(strings.Join(strings.Fields(start), " "), len(sql), most)
	}
	var b strings.Builder
	from := 0 // start of the text to copy
	asked := 0
	for _, t := range all {
		if t.spaced && b.Len() > 0 {
			b.WriteByte(' ')
		}
		from = t.at + len(t.text)
		if t.kind != placeholder {
			b.WriteString(t.text)
			continue
		}
		at := asked
		if d == Postgres {
			n, _ := strconv.Atoi(t.text[1:])
			at = n - 1
		}
		asked++
		if at < 0 || at >= len(values) {
			b.WriteString(t.text)
			continue
		}
		b.WriteString(values[at])
	}
	if rest == unfinished {
		b.WriteByte(' ')
		b.WriteString(strings.TrimSpace(start[from:]))
	}
	return cutLine(b.String(), len(sql), most)
}

func cutLine(line string, size, most int) string {
	line = OneLine(line)
	if size > most {
		line += fmt.Sprintf("... (%d bytes)", size)
	}
	return line
}

// Placeholders returns the number of placeholders in the statement, such as each ? of MySQL.
func Placeholders(sql string, d Dialect) (n int) {
	all, _ := tokens(sql, d, d == MySQL)
	for _, t := range all {
		if t.kind == placeholder {
			n++
		}
	}
	return n
}

// Quote returns a value as an SQL string, for people. It cuts the value after 100 bytes, and uses
// hexadecimal digits if the value is not text.
func Quote(value []byte) string {
	cut := value
	if len(cut) > longestValue {
		cut = cut[:longestValue]
		for n := 0; n < utf8.UTFMax && len(cut) > 0 && !utf8.Valid(cut); n++ {
			cut = cut[:len(cut)-1]
		}
	}
	var quoted string
	if utf8.Valid(cut) && !strings.ContainsFunc(string(cut), func(r rune) bool { return r < ' ' && !unicode.IsSpace(r) }) {
		quoted = "'" + strings.ReplaceAll(OneLine(string(cut)), "'", "''") + "'"
	} else {
		quoted = fmt.Sprintf("x'%x'", value[:min(len(value), longestValue/2)])
	}
	if len(cut) < len(value) {
		quoted += fmt.Sprintf("... (%d bytes)", len(value))
	}
	return quoted
}

// OneLine returns s as valid text without line breaks.
func OneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
