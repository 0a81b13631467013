package effect

import "strings"

// The kinds of tokens.
const (
	other      = iota // a sign, such as "," or "@@"
	word              // a keyword or a name, without quotes
	identifier        // a name in quotes
	text
	number
	placeholder // ? of MySQL, $1 of PostgreSQL
)

// A token is a piece of a statement.
type token struct {
	kind   int
	text   string // text as it was sent
	at     int    // offset in the statement, in bytes
	spaced bool   // white space or a comment precedes it
}

func (t token) is(name string) bool { return t.kind == word && strings.EqualFold(t.text, name) }

// qualified returns the position of the last part of the qualified name at t[i], such as b in a.b; -1 if
// there is no name.
func qualified(t []token, i int) (last int) {
	last = -1
	for ; i < len(t) && (t[i].kind == word || t[i].kind == identifier); i += 2 {
		last = i
		if i+1 == len(t) || t[i+1].text != "." {
			break
		}
	}
	return last
}

// The ways in which the text of a statement can end.
const (
	whole      = iota
	odd        // it contains a comment that MySQL executes, or a comment without an end
	unfinished // it ends within a string
)

// tokens splits a statement. If `escape` is true, a backslash in a string escapes the next character.
// The tokens do not include an odd or unfinished part.
func tokens(sql string, d Dialect, escape bool) (all []token, rest int) {
	s := scanner{sql: sql, dialect: d, escape: escape}
	for {
		spaced := s.space()
		if s.at >= len(sql) {
			break
		}
		t := token{at: s.at, spaced: spaced}
		t.kind = s.next()
		if s.unfinished {
			return all, unfinished
		}
		t.text = sql[t.at:s.at]
		all = append(all, t)
	}
	if s.odd {
		return all, odd
	}
	return all, whole
}

type scanner struct {
	sql             string
	at              int
	dialect         Dialect
	escape          bool
	odd, unfinished bool
}

func (s *scanner) has(prefix string) bool { return strings.HasPrefix(s.sql[s.at:], prefix) }

// peek returns the byte n positions further on, or 0 after the end.
func (s *scanner) peek(n int) byte {
	if s.at+n >= len(s.sql) {
		return 0
	}
	return s.sql[s.at+n]
}

// space skips white space and comments. It reports whether there was any.
func (s *scanner) space() bool {
	from := s.at
	for s.at < len(s.sql) {
		switch c := s.sql[s.at]; {
		case isSpace(c):
			s.at++
		case c == '#' && s.dialect == MySQL, s.has("--") && (s.dialect == Postgres || s.peek(2) <= ' '):
			end := strings.IndexByte(s.sql[s.at:], '\n')
			if end < 0 {
				end = len(s.sql) - s.at
			}
			s.at += end
		case s.has("/*"):
			s.comment()
		default:
			return s.at > from
		}
	}
	return s.at > from
}

// comment skips a comment. MySQL executes /*! */, and MariaDB also /*M! */. Comments of PostgreSQL
// nest.
func (s *scanner) comment() {
	if s.dialect == MySQL && (s.peek(2) == '!' || s.peek(2) == 'M' && s.peek(3) == '!') {
		s.odd = true
	}
	s.at += 2
	for depth := 1; depth > 0; {
		end := strings.Index(s.sql[s.at:], "*/")
		if end < 0 {
			s.odd, s.at = true, len(s.sql)
			return
		}
		if inner := strings.Index(s.sql[s.at:s.at+end], "/*"); inner >= 0 && s.dialect == Postgres {
			depth++
			s.at += inner + 2
			continue
		}
		depth--
		s.at += end + 2
	}
}

func (s *scanner) next() (kind int) {
	switch c := s.sql[s.at]; {
	case c == '\'':
		s.quoted(c, s.escape)
		return text
	case c == '"' && s.dialect == MySQL:
		s.quoted(c, s.escape)
		if s.escape {
			return text
		}
		return identifier // if ANSI_QUOTES is on
	case c == '"', c == '`' && s.dialect == MySQL:
		s.quoted(c, false)
		return identifier
	case c == '?' && s.dialect == MySQL:
		s.at++
		return placeholder
	case c == '$' && s.dialect == Postgres:
		return s.dollar()
	case isDigit(c):
		s.name()
		for s.peek(0) == '.' || isName(s.peek(0)) {
			s.at++
		}
		return number
	case isName(c):
		if s.dialect == Postgres && (c == 'e' || c == 'E') && s.peek(1) == '\'' {
			s.at++
			s.quoted('\'', true)
			return text
		}
		s.name()
		return word
	case s.has("@@"):
		s.at += 2
		return other
	}
	s.at++
	return other
}

// quoted reads a string or a name. A doubled quote in it stands for one quote.
func (s *scanner) quoted(quote byte, escape bool) {
	for s.at++; s.at < len(s.sql); s.at++ {
		switch c := s.sql[s.at]; {
		case c == '\\' && escape:
			s.at++
		case c == quote && s.peek(1) == quote:
			s.at++
		case c == quote:
			s.at++
			return
		}
	}
	s.at = len(s.sql)
	s.unfinished = true
}

// dollar reads $1, or a string between $tag$ and $tag$.
func (s *scanner) dollar() (kind int) {
	n := 1
	for isName(s.peek(n)) && s.peek(n) != '$' {
		n++
	}
	if s.peek(n) != '$' || isDigit(s.peek(1)) {
		s.at += n
		if n > 1 {
			return placeholder
		}
		return other
	}
	tag := s.sql[s.at : s.at+n+1]
	end := strings.Index(s.sql[s.at+len(tag):], tag)
	if end < 0 {
		s.unfinished = true
		return text
	}
	s.at += end + 2*len(tag)
	return text
}

func (s *scanner) name() {
	for s.at < len(s.sql) && isName(s.sql[s.at]) {
		s.at++
	}
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isName reports whether c is a letter, a digit, _, $, or part of a character outside ASCII.
func isName(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
