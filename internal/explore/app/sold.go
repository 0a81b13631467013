package app

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"

	"github.com/oversell/oversell/internal/nearest"
)

// A Sale says which answers acknowledge a sale.
type Sale struct {
	Statuses []int
	Body     *regexp.Regexp // matches the body, too; nil: any body
}

// Acknowledged reports whether an answer acknowledges a sale.
func (s Sale) Acknowledged(status int, body string) bool {
	return slices.Contains(s.Statuses, status) && (s.Body == nil || s.Body.MatchString(body))
}

// saleKeys are the keys of `sold` as a map.
var saleKeys = []string{"status", "body"}

// sold reads the answers that acknowledge a sale: statuses, or a map with saleKeys.
func (a *App) sold(f *file) (err error) {
	status := f.Sold
	if m, is := status.(map[string]any); is {
		status = m["status"]
		for name := range m {
			if !slices.Contains(saleKeys, name) {
				return fmt.Errorf("sold: %w", nearest.Unknown("key", name, saleKeys, ""))
			}
		}
		if body, given := m["body"]; given {
			if a.Sold.Body, err = regexp.Compile(fmt.Sprint(body)); err != nil {
				return fmt.Errorf("sold: body: %w", err)
			}
		}
	}
	a.Sold.Statuses, err = statuses(status)
	return err
}

// statuses reads 200, a list, or 2xx, the default.
func statuses(v any) (all []int, _ error) {
	list, ok := v.([]any)
	switch {
	case v == nil:
		list = []any{"2xx"}
	case !ok:
		list = []any{v}
	}
	for _, one := range list {
		switch s := one.(type) {
		case uint64:
			if s < http.StatusContinue || s > 599 {
				return nil, fmt.Errorf("sold: %d is not an HTTP status", s)
			}
			all = append(all, int(s))
		case string:
			if len(s) != 3 || s[1:] != "xx" || s[0] < '1' || s[0] > '5' {
				return nil, fmt.Errorf("sold: %q is not an HTTP status; expected 200, a list, 2xx, or { status: 200, body: REGEXP }", s)
			}
			for n := range 100 {
				all = append(all, int(s[0]-'0')*100+n)
			}
		default:
			return nil, errors.New("sold: expected 200, a list, 2xx, or { status: 200, body: REGEXP }")
		}
	}
	return all, nil
}
