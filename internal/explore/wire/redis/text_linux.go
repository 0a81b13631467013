package redis

import (
	"crypto/sha1" // #nosec G505 -- the name that Redis gives a script, not a secret
	"encoding/hex"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/oversell/oversell/internal/explore/effect"
)

// Limits of the texts for people.
const (
	maxWord    = 60   // bytes of an argument
	maxCommand = 1000 // bytes of a command
	maxAnswer  = 80   // characters of an answer
)

// commandText returns a command in one line. It replaces a script by the first digits of its SHA-1, so
// EVAL and EVALSHA look the same. It omits passwords.
func commandText(args [][]byte) string {
	name := strings.ToUpper(string(args[0]))
	words := []string{strings.ToUpper(word(args[0]))}
	rest := args[1:]
	switch {
	case len(rest) > 0 && effect.Redis{Name: name}.IsScript():
		words[0] = strings.Replace(name, "EVALSHA", "EVAL", 1)
		words = append(words, script(name, rest[0]))
		if rest = rest[1:]; len(rest) > 0 {
			rest = rest[1:] // skips the number of keys
		}
	case len(rest) > 0 && name == "AUTH":
		words, rest = append(words, "***"), nil
	}
	size := 0
	for i, a := range rest {
		w := word(a)
		switch {
		case i == 0 && hasSubcommands(name):
			w = strings.ToUpper(w)
		case name == "HELLO" && i >= 2 && strings.EqualFold(string(rest[i-2]), "AUTH"):
			w = "***"
		}
		if size += len(w) + 1; size > maxCommand {
			return strings.Join(words, " ") + " … (" + strconv.Itoa(len(args)-1) + " arguments)"
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

// script names a script by the first six digits of its SHA-1, and a function by its name.
func script(name string, text []byte) string {
	switch {
	case strings.HasPrefix(name, "EVALSHA"):
		return strings.ToLower(word(text[:min(6, len(text))]))
	case strings.HasPrefix(name, "EVAL"):
		sum := sha1.Sum(text) // #nosec G401 -- as above
		return hex.EncodeToString(sum[:])[:6]
	}
	return word(text)
}

func hasSubcommands(name string) bool {
	switch name {
	case "CLIENT", "CONFIG", "SCRIPT", "FUNCTION", "OBJECT", "MEMORY", "PUBSUB", "XINFO", "XGROUP",
		"COMMAND", "ACL", "CLUSTER", "LATENCY", "SLOWLOG", "MODULE", "DEBUG":
		return true
	}
	return false
}

// word returns an argument, in quotes if it would not be one word.
func word(b []byte) string {
	end := len(b)
	if end > maxWord {
		end = maxWord
		for end > maxWord-utf8.UTFMax && !utf8.RuneStart(b[end]) {
			end--
		}
	}
	s, cut := string(b[:end]), end < len(b)
	if s == "" || strings.ContainsFunc(s, unicode.IsSpace) {
		s = strconv.Quote(s)
	} else {
		s = escape(s)
	}
	if cut {
		s += "…"
	}
	return s
}

func escape(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if strconv.IsPrint(r) && !(r == utf8.RuneError && n == 1) {
			b.WriteString(s[:n])
		} else {
			q := strconv.Quote(s[:n])
			b.WriteString(q[1 : len(q)-1])
		}
		s = s[n:]
	}
	return b.String()
}

func answerText(v *value) string {
	var b strings.Builder
	v.write(&b, true)
	return cut(b.String())
}

func cut(s string) string {
	if utf8.RuneCountInString(s) <= maxAnswer {
		return s
	}
	runes := []rune(s)
	return string(runes[:maxAnswer-1]) + "…"
}

// write appends v to b, until there is enough text for the function `cut`.
func (v *value) write(b *strings.Builder, outermost bool) {
	text := string(v.text[:min(len(v.text), 4*maxAnswer)])
	switch {
	case v.null:
		b.WriteString("nil")
	case v.kind == '-' || v.kind == '!':
		b.WriteString("error " + escape(text))
	case v.kind == '#':
		b.WriteString(map[string]string{"t": "true", "f": "false"}[text])
	case v.kind == '$' || v.kind == '=':
		if outermost {
			b.WriteString(strconv.Quote(text))
		} else {
			b.WriteString(word(v.text))
		}
	case v.kind == '%':
		v.writeItems(b, "{}")
	case v.kind == '*' || v.kind == '~' || v.kind == '>':
		v.writeItems(b, "[]")
	default:
		b.WriteString(escape(text))
	}
}

func (v *value) writeItems(b *strings.Builder, around string) {
	b.WriteByte(around[0])
	for i := range v.items {
		switch {
		case i > 0 && v.kind == '%' && i%2 == 1:
			b.WriteString(": ")
		case i > 0:
			b.WriteByte(' ')
		}
		if b.Len() > 4*maxAnswer {
			b.WriteString("…")
			break
		}
		v.items[i].write(b, false)
	}
	b.WriteByte(around[1])
}
