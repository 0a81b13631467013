package effect

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// longestLine and longestValue are what people are shown, in bytes.
const (
	longestLine  = 2000
	longestValue = 100
)

// Line is the statement for people, in one line: white space and comments are one space
// each (comments are dropped since they may carry ids of the request), and values, as Quote
// and such make them, stand where ? or $1 is. A placeholder without a value stays.
func Line(sql string, d Dialect, values ...string) string {
	start := sql[:min(len(sql), longestLine)]
	all, rest := tokens(start, d, d == MySQL)
	if rest == odd && len(all) == 0 {
		return cutLine(strings.Join(strings.Fields(start), " "), len(sql))
	}
	var b strings.Builder
	from := 0 // of what is copied
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
	return cutLine(b.String(), len(sql))
}

func cutLine(line string, size int) string {
	line = OneLine(line)
	if size > longestLine {
		line += fmt.Sprintf("... (%d bytes)", size)
	}
	return line
}

// Placeholders is how many values the statement asks for: each ? of MySQL.
func Placeholders(sql string, d Dialect) (n int) {
	all, _ := tokens(sql, d, d == MySQL)
	for _, t := range all {
		if t.kind == placeholder {
			n++
		}
	}
	return n
}

// Quote is a value as a string of SQL, for people: cut after 100 bytes, and as hexadecimal
// digits where it is no text.
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

// OneLine returns valid text without line breaks.
func OneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
