package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/xeipuuv/gojsonpointer"

	"github.com/oversell/oversell/internal/nearest"
)

// A Before is a request that each buyer sends before each schedule, such as a login.
type Before struct {
	Request
	Name   string           // login in {{login.token}}
	Values map[string]Value // by name: token in {{login.token}}
}

// A Value is the place of a text in an answer. Later requests contain that text.
type Value struct {
	kind string // one of valueKinds
	at   string // a JSON pointer, the name of a header or cookie, or a regular expression
	in   gojsonpointer.JsonPointer
	text *regexp.Regexp
}

// valueKinds are the places of a value, each with an example.
var valueKinds = map[string]string{"body": "body /token", "header": "header Location", "cookie": "cookie session", "match": `match "id":(\d+)`}

// handed matches {{login.token}} and {{buyer}}. It also matches a mistake such as {{token}}, which must
// not be sent.
var handed = regexp.MustCompile(`\{\{ *([^{}\n]*?) *\}\}`)

var valueName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// beforehand reads the requests that each buyer sends before a schedule. It checks that an earlier
// request provides each value that a request uses.
func (a *App) beforehand(f *file) error {
	known := []string{"buyer"}
	for n, one := range f.Before {
		key := fmt.Sprintf("before: request %d", n+1)
		b := Before{Values: map[string]Value{}}
		m, isMap := one.(map[string]any)
		if isMap {
			m = maps.Clone(m)
			b.Name, _ = m["name"].(string)
			values, are := m["values"].(map[string]any)
			if _, given := m["values"]; given && (!are || !valueName.MatchString(b.Name)) {
				return fmt.Errorf("%s: values needs a name of letters and digits, and a map; expected, for example, { name: login, request: ..., values: { token: body /token } }", key)
			}
			delete(m, "name")
			delete(m, "values")
			one = m
			for name, place := range values {
				v, err := valueOf(name, fmt.Sprint(place))
				if err != nil {
					return fmt.Errorf("%s: values: %w", key, err)
				}
				b.Values[name] = v
			}
		}
		var err error
		if b.Request, err = request(key, one); err != nil {
			return err
		}
		if err := b.Request.uses(key, known); err != nil {
			return err
		}
		for name := range b.Values {
			known = append(known, b.Name+"."+name)
		}
		a.Before = append(a.Before, b)
	}
	a.handed = known
	return a.areHanded(slices.Concat(a.Buyers, a.Requests))
}

// areHanded returns an error if a request uses a value that no request of `before` provides.
func (a *App) areHanded(requests []Request) error {
	for _, r := range requests {
		if err := r.uses(r.Method+" "+r.URL, a.handed); err != nil {
			return err
		}
	}
	return nil
}

func valueOf(name, text string) (v Value, err error) {
	v.kind, v.at, _ = strings.Cut(text, " ")
	v.at = strings.TrimSpace(v.at)
	example, known := valueKinds[v.kind]
	switch {
	case !valueName.MatchString(name):
		return v, fmt.Errorf("%q is not a name of letters and digits", name)
	case !known:
		return v, fmt.Errorf("%s: %w", name, nearest.Unknown("place", v.kind, slices.Sorted(maps.Keys(valueKinds)), ""))
	case v.at == "":
		err = errors.New("the place is missing")
	case v.kind == "body":
		v.in, err = gojsonpointer.NewJsonPointer(v.at)
	}
	switch {
	case err != nil:
		return v, fmt.Errorf("%s: %q; expected, for example, %s", name, text, example)
	case v.kind == "match":
		if v.text, err = regexp.Compile(v.at); err == nil && v.text.NumSubexp() != 1 {
			err = errors.New("it needs one group, whose text is the value")
		}
		if err != nil {
			return v, fmt.Errorf("%s: %s: %w", name, v.at, err)
		}
	}
	return v, nil
}

// String returns the place as written in oversell.yaml.
func (v Value) String() string { return v.kind + " " + v.at }

// In returns the value from an answer. The result `found` reports whether the answer contains it.
func (v Value) In(header http.Header, body string) (text string, found bool) {
	switch v.kind {
	case "header":
		return header.Get(v.at), header.Get(v.at) != ""
	case "cookie":
		for _, c := range (&http.Response{Header: header}).Cookies() {
			if c.Name == v.at {
				return c.Value, true
			}
		}
		return "", false
	case "match":
		m := v.text.FindStringSubmatch(body)
		return strings.Join(m[min(len(m), 1):], ""), m != nil
	}
	var answer any
	d := json.NewDecoder(strings.NewReader(body))
	d.UseNumber()
	if d.Decode(&answer) != nil {
		return "", false
	}
	value, _, err := v.in.Get(answer)
	return fmt.Sprint(value), err == nil && value != nil
}

// IsPersonal reports whether the request differs between buyers.
func (r Request) IsPersonal() bool { return slices.ContainsFunc(r.texts(), handed.MatchString) }

// texts returns the parts of the request that can contain values.
func (r Request) texts() []string {
	return append([]string{r.URL, r.Body}, slices.Collect(maps.Values(r.Header))...)
}

// uses returns an error if the request uses a value that is not in the list.
func (r Request) uses(key string, known []string) error {
	for _, text := range r.texts() {
		for _, m := range handed.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(known, m[1]) {
				return fmt.Errorf("%s: %s: %w; values of a request in before: hand it on", key, m[0], nearest.Unknown("value", m[1], known, ""))
			}
		}
	}
	return nil
}

// With fills the buyer's number and the given values, by name, into the request. It escapes each value
// for its place: the path, the query, or a body in JSON or of a form.
func (r Request) With(buyer int, values map[string]string) Request {
	fill := func(text string, escape func(string) string) string {
		return handed.ReplaceAllStringFunc(text, func(found string) string {
			name := handed.FindStringSubmatch(found)[1]
			if name == "buyer" {
				return strconv.Itoa(buyer)
			}
			return escape(values[name])
		})
	}
	path, query, hasQuery := strings.Cut(r.URL, "?")
	if r.URL = fill(path, url.PathEscape); hasQuery {
		r.URL += "?" + fill(query, url.QueryEscape)
	}
	r.Body = fill(r.Body, r.bodyEscape())
	header := map[string]string{}
	for name, text := range r.Header {
		header[name] = fill(text, plain)
	}
	r.Header = header
	return r
}

// bodyEscape returns the function that escapes a value for the body. A body that begins like JSON
// counts as JSON with any Content-Type, since curl -d calls every body a form.
func (r Request) bodyEscape() func(string) string {
	kind := ""
	for name, text := range r.Header {
		if strings.EqualFold(name, "Content-Type") {
			kind = strings.ToLower(text)
		}
	}
	start := strings.TrimSpace(r.Body)
	switch {
	case strings.Contains(kind, "json"), strings.HasPrefix(start, "["), strings.HasPrefix(start, "{") && !strings.HasPrefix(start, "{{"):
		return inJSON
	case strings.Contains(kind, "urlencoded"):
		return url.QueryEscape
	}
	return plain
}

func plain(text string) string { return text }

// inJSON escapes a text for a JSON string, without the quotes.
func inJSON(text string) string {
	quoted, _ := json.Marshal(text) // a string has no error
	return string(quoted[1 : len(quoted)-1])
}
