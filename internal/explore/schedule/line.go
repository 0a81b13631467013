package schedule

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// version must change if the meaning of an existing replay string changes.
const version = 1

// A Schedule is the content of a replay string. It does not name the database. In another database, other commands
// may wait, so the replay string may not fit.
//
//	v1:redis:b2:s1:1*3.2.expire.2*5.1
type Schedule struct {
	Strategy string // name of the strategy or program; for a program, Stock is 1 and has no meaning
	Buyers   int
	Stock    int64
	Units    Units // units that each buyer asks for
	Parts    int64 // number of rows into which the stock is divided; 0: it is in the product's own row
	Shared   bool  // all buyers use one process
	OneKey   bool  // all purchases have one Idempotency-Key
	Overlap  bool  // a program's autocommitted statement may run as two steps: execute, commit
	// Tokens are the steps. Commands: "1" of buyer 1; "1a" at the first Redlock node; "1r" by the watchdog; "1rr"
	// the watchdog's ROLLBACK while "1r" waits; "1+2" both at once; "1~2" buyer 2's in the pause after buyer 1's.
	// Events: "expire", "crash1", "forget", "forget-a", "renew1", "timeout1".
	Tokens []string
}

// Head describes the strategy, the buyers and the stock, for an error message.
func (s Schedule) Head() string {
	_, words := s.options()
	return fmt.Sprintf("%s with %d buyers and stock %d%s", s.Strategy, s.Buyers, s.Stock, words)
}

// options describes the settings that differ from their defaults, for a replay string and for an error message.
func (s Schedule) options() (line, words string) {
	units := s.Units.String()
	for _, o := range []struct {
		is          bool
		line, words string
	}{
		{units != "1", ":u" + units, " and orders of " + units + " units"},
		{s.Parts > 0, fmt.Sprintf(":p%d", s.Parts), fmt.Sprintf(" and the stock in %d parts", s.Parts)},
		{s.Shared, ":shared", " in one process"},
		{s.OneKey, ":key", " under one Idempotency-Key"},
		{s.Overlap, ":overlap", " and --overlap"},
	} {
		if o.is {
			line, words = line+o.line, words+o.words
		}
	}
	return line, words
}

// Concurrent reports whether the schedule contains a concurrent pair, whose order is decided by the server.
func (s Schedule) Concurrent() bool {
	return slices.ContainsFunc(s.Tokens, Concurrent)
}

// Concurrent reports whether a token is a concurrent pair.
func Concurrent(token string) bool { return strings.Contains(token, "+") }

// String returns the replay string.
func (s Schedule) String() string {
	var parts []string
	for i := 0; i < len(s.Tokens); {
		n := i
		for n < len(s.Tokens) && s.Tokens[n] == s.Tokens[i] && n-i < mostRepeated {
			n++
		}
		part := s.Tokens[i]
		if n-i > 1 {
			part += "*" + strconv.Itoa(n-i)
		}
		parts = append(parts, part)
		i = n
	}
	options, _ := s.options()
	return fmt.Sprintf("v%d:%s:b%d:s%d%s:%s", version, s.Strategy, s.Buyers, s.Stock, options, strings.Join(parts, "."))
}

// crowd matches the number of buyers and the stock in a replay string.
var crowd = regexp.MustCompile(`^b([2-8]):s([1-8])$`)

// units matches the units that the buyers ask for, if not all ask for one.
var units = regexp.MustCompile(`^u(?:[2-8]|[1-8](?:,[1-8]){1,7})$`)

// parts matches the number of rows into which the stock is divided.
var parts = regexp.MustCompile(`^p[1-8]$`)

// command matches the token of a command or a pair of commands.
const command = `[1-9]r{0,2}[a-q]?(?:[+~][1-9]r{0,2}[a-q]?)?`

// mostRepeated is the maximum number of repetitions in one part of a replay string.
const mostRepeated = 999

// step matches a command or an event, with the number of repetitions.
var step = func() *regexp.Regexp {
	tokens := command
	for _, k := range Kinds() {
		tokens += "|" + k.tokens
	}
	return regexp.MustCompile(`^(` + tokens + `)(?:\*([1-9][0-9]{0,2}))?$`)
}()

// versioned matches the first part of a replay string of any version.
var versioned = regexp.MustCompile(`^v[0-9]+$`)

// Parse reads a replay string. The error is one line.
func Parse(line string) (s Schedule, err error) {
	fields := strings.Split(strings.TrimSpace(line), ":")
	if len(fields) < 2 || fields[0] != fmt.Sprintf("v%d", version) {
		if len(fields) >= 5 && versioned.MatchString(fields[0]) {
			return s, fmt.Errorf("the replay string has version %s, and this program reads version v%d", fields[0], version)
		}
		return s, fmt.Errorf("invalid replay string %q; expected, for example, v%d:none:b2:s1:1*2.2*5.1*3", line, version)
	}
	option := func(is func(string) bool) (text string, found bool) {
		if found = len(fields) > 5 && is(fields[4]); found {
			text = fields[4]
			fields = slices.Delete(fields, 4, 5)
		}
		return text, found
	}
	if n, found := option(units.MatchString); found {
		s.Units = parseUnits(n[1:])
	}
	if n, found := option(parts.MatchString); found {
		s.Parts, _ = strconv.ParseInt(n[1:], 10, 64)
	}
	_, s.Shared = option(func(text string) bool { return text == "shared" })
	_, s.OneKey = option(func(text string) bool { return text == "key" })
	_, s.Overlap = option(func(text string) bool { return text == "overlap" })
	if len(fields) > 5 {
		return s, fmt.Errorf("invalid replay string %q: unknown option %q; optional after s1, in this order: u1,2 p2 shared key overlap", line, fields[4])
	}
	if len(fields) != 5 {
		return s, fmt.Errorf("invalid replay string %q: expected 5 parts (got %d)", line, len(fields))
	}
	s.Strategy = fields[1]
	size := crowd.FindStringSubmatch(fields[2] + ":" + fields[3])
	if size == nil {
		return s, fmt.Errorf("invalid replay string %q: expected buyers and stock such as b2:s1, each at most 8", line)
	}
	s.Buyers, _ = strconv.Atoi(size[1])
	s.Stock, _ = strconv.ParseInt(size[2], 10, 64)
	if s.Tokens, err = parseSteps(fields[4]); err != nil {
		return s, fmt.Errorf("invalid replay string %q: %w", line, err)
	}
	if len(s.Tokens) > MaxLine {
		return s, fmt.Errorf("a replay string must have at most %d steps (got %d)", MaxLine, len(s.Tokens))
	}
	return s, nil
}

// parseSteps reads the last part of a replay string.
func parseSteps(steps string) (tokens []string, err error) {
	for _, text := range strings.Split(steps, ".") {
		m := step.FindStringSubmatch(text)
		if m == nil {
			return nil, fmt.Errorf("%q is no step", text)
		}
		n := 1
		if m[2] != "" {
			n, _ = strconv.Atoi(m[2])
		}
		for range n {
			tokens = append(tokens, m[1])
		}
	}
	return tokens, nil
}
