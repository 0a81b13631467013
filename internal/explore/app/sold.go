package app

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"

	"github.com/oversell/oversell/internal/nearest"
)

// Answers describes a set of answers, such as those that acknowledge a sale.
type Answers struct {
	Statuses []int
	Body     *regexp.Regexp // must match the body, too; nil: any body
}

// Has reports whether an answer belongs to the set.
func (s Answers) Has(status int, body string) bool {
	return slices.Contains(s.Statuses, status) && (s.Body == nil || s.Body.MatchString(body))
}

var answerKeys = []string{"status", "body"}

func (a *App) answers(f *file) (err error) {
	if a.Sold, err = answersOf(cmp.Or(f.Sold, any("2xx")), "2xx"); err != nil {
		return fmt.Errorf("sold: %w", err)
	}
	if f.Refused != nil {
		if a.Refused, err = answersOf(f.Refused, "5xx"); err != nil {
			return fmt.Errorf("refused: %w", err)
		}
	}
	return nil
}

// answersOf reads statuses, or a map with answerKeys. The parameter `status` is the default of the map.
func answersOf(v any, status string) (all Answers, err error) {
	if m, is := v.(map[string]any); is {
		v = cmp.Or(m["status"], any(status))
		for name := range m {
			if !slices.Contains(answerKeys, name) {
				return all, nearest.Unknown("key", name, answerKeys, "")
			}
		}
		if body, given := m["body"]; given {
			if all.Body, err = regexp.Compile(fmt.Sprint(body)); err != nil {
				return all, fmt.Errorf("body: %w", err)
			}
		}
	}
	all.Statuses, err = statuses(v)
	return all, err
}

// statuses reads a status such as 200 or 2xx, or a list of them.
func statuses(v any) (all []int, _ error) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, one := range list {
		switch s := one.(type) {
		case uint64:
			if s < http.StatusContinue || s > 599 {
				return nil, fmt.Errorf("%d is not an HTTP status", s)
			}
			all = append(all, int(s))
		case string:
			if len(s) != 3 || s[1:] != "xx" || s[0] < '1' || s[0] > '5' {
				return nil, fmt.Errorf("%q is not an HTTP status; expected 200, a list, 2xx, or { status: 200, body: REGEXP }", s)
			}
			for n := range 100 {
				all = append(all, int(s[0]-'0')*100+n)
			}
		default:
			return nil, errors.New("expected 200, a list, 2xx, or { status: 200, body: REGEXP }")
		}
	}
	return all, nil
}
