package app

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/nearest"
)

// Limits on the number of buyers.
const (
	minBuyers = 2
	maxBuyers = 8
)

func (a *App) buyers(f *file) error {
	if list, is := f.Buyers.([]any); is {
		return a.listed(list, f.Buyer)
	}
	if m, isMap := f.Buyer.(map[string]any); isMap && m["request"] == nil && f.Buyers == nil {
		var err error
		a.defaults, _, err = parts("buyer", m)
		return err
	}
	if f.Buyer != nil {
		r, err := request("buyer", f.Buyer)
		if err != nil {
			return err
		}
		a.template = &r
	}
	switch b := f.Buyers.(type) {
	case nil:
		if a.template == nil {
			return nil
		}
		return a.SetBuyers(minBuyers)
	case uint64:
		if a.template == nil {
			return errors.New("buyers is a number, so buyer must be the request of each buyer")
		}
		return a.SetBuyers(int(min(b, math.MaxInt32)))
	default:
		return errors.New("buyers must be a number or a list of requests")
	}
}

func (a *App) noBuyer() error {
	switch {
	case len(a.Requests) > 0:
		return errors.New("buyer is missing; shop scan explores the pairs of requests, and this command needs the request of a buyer")
	case a.defaults.Header != nil || a.defaults.Body != "":
		return errNoLine("buyer")
	}
	return errors.New("buyer is missing; set the request of a buyer, for example POST http://127.0.0.1:8080/buy?item=1")
}

func errNoLine(key string) error {
	return fmt.Errorf("%s: expected METHOD URL, for example POST http://127.0.0.1:8080/buy?item=1", key)
}

func (a *App) scanned(f *file) error {
	for n, one := range f.Requests {
		name := ""
		if m, isMap := one.(map[string]any); isMap {
			m = maps.Clone(m)
			name, _ = m["name"].(string)
			delete(m, "name")
			one = m
		}
		r, err := request(fmt.Sprintf("requests: the %d.", n+1), one)
		if err != nil {
			return err
		}
		r.Named = name
		a.Requests = append(a.Requests, r.or(a.defaults))
	}
	return nil
}

// Import adds requests from a file of another format. A header in `buyer` replaces the header of that
// name in these requests, since it can contain a value of `before`, such as a token.
func (a *App) Import(requests []Request) error {
	for _, r := range requests {
		body := r.Body
		r = Request{Method: r.Method, URL: r.URL, Header: a.defaults.Header, Named: r.Named}.or(r)
		r.Body = body
		a.Requests = append(a.Requests, r)
	}
	return a.areHanded(a.Requests)
}

// listed reads a list of requests. The parameter `common` is the map in `buyer`, or nil. The map
// provides the header and the body for a request that has none of its own.
func (a *App) listed(list []any, common any) error {
	all, isMap := common.(map[string]any)
	if _, one := all["request"]; common != nil && (!isMap || one) {
		return errors.New("buyers is a list of requests, so buyer can only have the header and the body of all of them")
	}
	defaults, _, err := parts("buyer", all)
	if err != nil {
		return err
	}
	for n, one := range list {
		r, err := request(fmt.Sprintf("buyers: the %d.", n+1), one)
		if err != nil {
			return err
		}
		a.Buyers = append(a.Buyers, r.or(defaults))
	}
	return a.checkCount(len(a.Buyers))
}

// or returns the request. The parameter `defaults` provides the parts that the request does not have.
func (r Request) or(defaults Request) Request {
	r.Body = cmp.Or(r.Body, defaults.Body)
	header := map[string]string{}
	for name, value := range defaults.Header {
		header[http.CanonicalHeaderKey(name)] = value
	}
	for name, value := range r.Header {
		header[http.CanonicalHeaderKey(name)] = value
	}
	r.Header = header
	return r
}

// SetBuyers sets the number of buyers. Each sends the only request in oversell.yaml. The error is one
// line.
func (a *App) SetBuyers(n int) error {
	if a.template == nil {
		if n == len(a.Buyers) {
			return nil
		}
		return fmt.Errorf("--buyers must match the list of requests in the file (got %d for %d requests)", n, len(a.Buyers))
	}
	if err := a.checkCount(n); err != nil {
		return err
	}
	if a.Serial && n > maxSerial {
		return errManyBuyers
	}
	a.Buyers = slices.Repeat([]Request{*a.template}, n)
	return nil
}

func (a *App) checkCount(n int) error {
	switch {
	case n < minBuyers || n > maxBuyers:
		return fmt.Errorf("buyers must be between %d and %d (got %d)", minBuyers, maxBuyers, n)
	case len(a.Run) > 1 && len(a.Run) != n:
		return fmt.Errorf("run must have one command line for all buyers, or one per buyer (got %d for %d buyers)", len(a.Run), n)
	}
	return nil
}

// token matches a method and the name of a header (RFC 9110, 5.6.2).
var token = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// requestKeys are the keys of a request that is a map.
var requestKeys = []string{"request", "header", "body"}

func request(key string, v any) (r Request, err error) {
	line, ok := v.(string)
	if m, is := v.(map[string]any); is {
		if r, line, err = parts(key, m); err != nil {
			return r, err
		}
		ok = line != ""
	}
	method, target, found := strings.Cut(line, " ")
	if !ok || !found || method != strings.ToUpper(method) {
		return r, errNoLine(key)
	}
	r.Method, r.URL = method, strings.TrimSpace(target)
	if !token.MatchString(method) {
		return r, fmt.Errorf("%s: %q is not an HTTP method; expected METHOD URL, for example POST http://127.0.0.1:8080/buy?item=1", key, method)
	}
	return r, checkURL(key, r.URL)
}

// parts reads the keys of a request that is a map. The result `line` is "METHOD URL", or "".
func parts(key string, m map[string]any) (r Request, line string, _ error) {
	for name := range m {
		if !slices.Contains(requestKeys, name) {
			return r, "", fmt.Errorf("%s: %w", key, nearest.Unknown("key", name, requestKeys, ""))
		}
	}
	line, _ = m["request"].(string)
	if body, given := m["body"]; given {
		r.Body = fmt.Sprint(body)
	}
	if header, given := m["header"]; given {
		all, is := header.(map[string]any)
		if !is {
			return r, "", fmt.Errorf("%s: header must be a map, for example { Content-Type: application/json }", key)
		}
		r.Header = map[string]string{}
		for h, text := range all {
			r.Header[h] = fmt.Sprint(text)
		}
	}
	for name, value := range r.Header {
		if !token.MatchString(name) || strings.ContainsAny(value, "\r\n\x00") {
			return r, "", fmt.Errorf("%s: header: %q with %q is not an HTTP header", key, name, value)
		}
	}
	return r, line, nil
}

// checkURL requires http, since the buyers' requests are sent without TLS.
func checkURL(key, text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "":
		return fmt.Errorf("%s: %q is not a URL; expected, for example, http://127.0.0.1:8080/buy?item=1", key, text)
	case u.Scheme != "http":
		return fmt.Errorf("%s: %q: only http:// works; serve without TLS in the test", key, text)
	}
	return nil
}
