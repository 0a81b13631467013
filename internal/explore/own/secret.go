package own

import (
	"fmt"
	"regexp"
	"strconv"
)

// secrets maps random values to the names that replace them in a witness, so that the witness is the same each time.
type secrets map[string]string

const uuidOf = `[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`

// secret matches the random values of strategies: rand.Text, a UUID with or without a number, redsync's 16 bytes in
// base64, an own key (see ownKey), and the id of a stream's entry.
var secret = regexp.MustCompile(`[A-Z2-7]{26}|` + uuidOf + `(?::[0-9]+)?|[A-Za-z0-9+/]{22}==|[a-z]+(?:-[a-z]+)*-[a-z2-7]{26}|[0-9]{13}-[0-9]+`)

// aTime matches times in ms since 1970, and remaining times in ms near schedule.Forever.
var aTime = regexp.MustCompile(`\b[0-9]{13,16}\b|\b3[56][0-9]{5}\b`)

// ownKey matches the Idempotency-Key that a strategy makes for a purchase without one: a name, and rand.Text in lower
// case.
var ownKey = regexp.MustCompile(`^[a-z]+(-[a-z]+)*-[a-z2-7]{26}$`)

// mayHide reports whether a text can contain a random value or a long number: seven digits in a row, 22 letters or
// digits, or eight before a hyphen. Most texts contain none. Without this check, the regular expressions took an eighth
// of the explorer's time.
func mayHide(text string) bool {
	digits, letters := 0, 0
	for i := range len(text) {
		c := text[i]
		switch {
		case '0' <= c && c <= '9':
			digits++
			letters++
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c == '+', c == '/':
			digits = 0
			letters++
		case c == '-' && letters >= 8:
			return true
		default:
			digits, letters = 0, 0
		}
		if digits >= 7 || letters >= 22 {
			return true
		}
	}
	return false
}

// readable replaces the random values in a buyer's text by their names, and times by "TTL" or "TIME".
func (n secrets) readable(buyer int, text string) string {
	if !mayHide(text) {
		return text
	}
	return aTime.ReplaceAllStringFunc(n.named(buyer, text), func(value string) string {
		if len(value) < 13 {
			return "TTL"
		}
		return "TIME"
	})
}

func (n secrets) named(buyer int, text string) string {
	return secret.ReplaceAllStringFunc(text, func(value string) string {
		if n[value] == "" {
			kind := "token"
			switch {
			case ownKey.MatchString(value):
				kind = "key"
			case len(value) > 13 && value[13] == '-' && value[8] != '-':
				kind = "entry"
			}
			name := kind + strconv.Itoa(buyer)
			for i := 2; n.taken(name); i++ {
				name = fmt.Sprintf("%s%d.%d", kind, buyer, i)
			}
			n[value] = name
		}
		return n[value]
	})
}

func (n secrets) taken(name string) bool {
	for _, other := range n {
		if other == name {
			return true
		}
	}
	return false
}
