package naming

import "strings"

// Regular expressions are slow on long statements. The functions of this file do the same work byte by byte, or report
// that a text contains nothing that an expression could match.

// mayBeRandom reports whether the pattern Random may match. A match has eight hexadecimal digits in a row, the 26
// digits of a ULID in a row, or six digits after a point.
func mayBeRandom(text string) bool {
	hex, ulid, fraction := 0, 0, -1
	for i := range len(text) {
		c := text[i]
		digit := c >= '0' && c <= '9'
		if digit || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' {
			hex++
		} else {
			hex = 0
		}
		if digit || c >= 'A' && c <= 'Z' {
			ulid++
		} else {
			ulid = 0
		}
		switch {
		case c == '.':
			fraction = 0
		case digit && fraction >= 0:
			fraction++
		default:
			fraction = -1
		}
		if hex == 8 || ulid == 26 || fraction == 6 {
			return true
		}
	}
	return false
}

// mayBeMoment reports whether the pattern Moment may match.
func mayBeMoment(text string) bool {
	at := strings.IndexByte(text, ':')
	return at >= 0 && strings.IndexByte(text[at+1:], ':') >= 0 && strings.IndexByte(text, '-') >= 0
}

// replaceKnown replaces the known values by their names. It looks at each longest run of letters, digits, "_" and "-",
// and then at each number. It does not change names such as <orders.1>.
func replaceKnown(text string, known map[string]string) string {
	if len(known) == 0 {
		return text
	}
	text = replaceRuns(text, known, func(c byte) bool { return isWord(c) || c == '-' }, func(string) bool { return true }, true)
	return replaceRuns(text, known, isWord, func(run string) bool { return strings.Trim(run, "0123456789") == "" }, false)
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// replaceRuns finds the longest runs of bytes of a class, and replaces those that are wanted and known. If `skip` is
// set, it does not change names such as <orders.1>.
func replaceRuns(text string, known map[string]string, class func(byte) bool, wanted func(string) bool, skip bool) string {
	var b strings.Builder
	done := 0
	for i := 0; i < len(text); {
		if skip && text[i] == '<' {
			if name := nameAt(text[i:]); name > 0 {
				i += name
				continue
			}
		}
		if !class(text[i]) {
			i++
			continue
		}
		from := i
		for i < len(text) && class(text[i]) {
			i++
		}
		if i-from < longID {
			continue // too short to be known
		}
		if name, is := known[text[from:i]]; is && wanted(text[from:i]) {
			b.WriteString(text[done:from])
			b.WriteString(name)
			done = i
		}
	}
	if done == 0 {
		return text
	}
	b.WriteString(text[done:])
	return b.String()
}

// nameAt returns the length of the name, such as <orders.1>, with which text begins; 0 if it begins with none. text
// must begin with "<".
func nameAt(text string) int {
	for _, whole := range []string{"<>", "<time>"} {
		if strings.HasPrefix(text, whole) {
			return len(whole)
		}
	}
	i := 1
	for i < len(text) && (isWord(text[i]) || text[i] == '-') {
		i++
	}
	if i == 1 || i == len(text) || text[i] != '.' && text[i] != ':' {
		return 0
	}
	i++
	from := i
	for i < len(text) && isWord(text[i]) {
		i++
	}
	if i == from || i == len(text) || text[i] != '>' {
		return 0
	}
	return i + 1
}
