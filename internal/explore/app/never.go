package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/witness"
)

// Told counts the buyers by the answers that they received.
type Told struct {
	Sold   int // buyers whose answer means a sale
	Failed int // buyers that got a failure or no answer
}

// mostRows is the maximum number of rows of a broken rule.
const mostRows = 10

// Never runs every query of `never` and returns those with rows. The counts of t replace :sold and
// :failed. The error names the query that failed.
func (s *Servers) Never(ctx context.Context, t Told) (found []witness.Finding, _ error) {
	for _, query := range s.app.Never {
		protocol, text, err := s.app.addressed(query)
		if err != nil {
			return nil, err
		}
		f := witness.Finding{Query: query}
		text, f.Answers = t.in(protocol, text)
		if f.Columns, f.Rows, err = rows(ctx, s.databases[protocol], text, mostRows); err != nil {
			return nil, fmt.Errorf("never: %s: %w", query, err)
		}
		if len(f.Rows) > 0 {
			found = append(found, f)
		}
	}
	return found, nil
}

// countOrQuoted matches, for each protocol, :sold and :failed. It also matches string literals, quoted
// names, comments and PostgreSQL's casts, in which the two are not placeholders.
var countOrQuoted = map[string]*regexp.Regexp{
	"mysql":    regexp.MustCompile("(?s)'(?:[^'\\\\]|\\\\.)*'|\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`|--\\s[^\n]*|#[^\n]*|/\\*.*?\\*/|:(?:sold|failed)\\b"),
	"postgres": regexp.MustCompile(`(?s)\b[eE]'(?:[^'\\]|\\.)*'|'[^']*'|"[^"]*"|--[^\n]*|/\*.*?\*/|::\w+|:(?:sold|failed)\b`),
}

// in fills the counts into a query: it replaces :sold and :failed, except in string literals and
// comments. The result `asked` reports whether the query contains one of them.
func (t Told) in(protocol, query string) (text string, asked bool) {
	numbers := map[string]int{":sold": t.Sold, ":failed": t.Failed}
	text = countOrQuoted[protocol].ReplaceAllStringFunc(query, func(found string) string {
		number, counts := numbers[found]
		if !counts {
			return found
		}
		asked = true
		return strconv.Itoa(number)
	})
	return text, asked
}

// maxSerial is the maximum number of buyers with serial runs, one buyer after the other. 4 buyers and
// their subsets have 65 orders.
const maxSerial = 4

var errManyBuyers = fmt.Errorf("without never every order of the buyers runs first, which takes too long for more than %d: leave some out, or list rules in never", maxSerial)

// judged reads the standard for correct runs: the serial orders of the buyers, the rules of `never`, or
// both.
func (a *App) judged(f *file) error {
	a.Serial, a.Strict, a.Except = len(a.Never) == 0 || f.Rules == "also", f.Strict, f.Except
	switch {
	case !slices.Contains([]string{"", "only", "also"}, f.Rules):
		return fmt.Errorf("rules: %q; expected also (each run must end like an order of the buyers, and `never` must hold) or only (only `never`)", f.Rules)
	case f.Rules != "" && len(a.Never) == 0:
		return fmt.Errorf("rules: %s needs never: list queries that must return no row, for example SELECT * FROM items WHERE stock < 0, or omit rules", f.Rules)
	case len(a.Except) > 0 && !a.Serial && len(a.Requests) == 0: // a scan always compares with the serial orders
		return errors.New("except says what may differ from an order of the buyers, and with never only the rules count: omit except, or set rules: also")
	case a.Strict && !a.Serial && len(a.Requests) == 0:
		return errors.New("strict compares with the orders of the buyers, and with never only the rules count: omit strict, or set rules: also")
	case a.Serial && a.MySQL == nil && a.Postgres == nil && a.Redis == nil:
		return errors.New("without a server there is nothing to compare; set mysql, postgres or redis")
	case a.Serial && len(a.Buyers) > maxSerial:
		return errManyBuyers
	}
	for _, e := range a.Except {
		if !exceptEntry.MatchString(e) {
			return fmt.Errorf("except: %q is neither table.column, table.*, redis.KEY, status, body nor body /path", e)
		}
	}
	return nil
}

var exceptEntry = regexp.MustCompile(`^(?:[^\s./]+(?:\.[^\s./]+)?\.(?:[^\s./]+|\*)|redis\.\S+|status|body(?: /.+)?)$`)

func (a *App) queries(*file) error {
	if len(a.Never) > 0 && a.MySQL == nil && a.Postgres == nil {
		return errors.New("never needs a database; set mysql or postgres")
	}
	if slices.Contains(a.Never, "") {
		return errors.New("never has an empty query; delete it, or write a query that must return no row")
	}
	for _, query := range append(slices.Clone(a.Never), a.Watch) {
		if _, _, err := a.addressed(query); err != nil {
			return err
		}
	}
	a.ruled = map[string]string{}
	for _, query := range a.Never {
		for _, table := range slices.Concat(effect.Relations(query, effect.MySQL), effect.Relations(query, effect.Postgres)) {
			a.ruled[table] = cmp.Or(a.ruled[table], query)
		}
	}
	return nil
}

// RuleOn returns the first rule of `never` that names the table; "" if there is none.
func (a *App) RuleOn(table string) string { return a.ruled[table] }

// RulesOn returns the rules of `never` for a database, without the prefix that names the database.
func (a *App) RulesOn(protocol string) (all []string) {
	for _, query := range a.Never {
		if on, rest, err := a.addressed(query); err == nil && on == protocol {
			all = append(all, rest)
		}
	}
	return all
}

// addressed returns the protocol of the database that a query addresses, and the query without the
// prefix.
func (a *App) addressed(query string) (protocol, rest string, _ error) {
	for _, name := range []string{"mysql", "postgres"} {
		if rest, found := strings.CutPrefix(query, name+":"); found {
			if a.Gate(name) == "" {
				return "", "", fmt.Errorf("%q needs the server; set %s", query, name)
			}
			return name, strings.TrimSpace(rest), nil
		}
	}
	switch {
	case query == "":
		return "", "", nil
	case a.MySQL != nil && a.Postgres != nil:
		return "", "", fmt.Errorf("%q: the file has two databases; write mysql: or postgres: before the query", query)
	case a.MySQL != nil:
		return "mysql", query, nil
	}
	return "postgres", query, nil
}
