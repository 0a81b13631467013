package app

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/require"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// TestValues: In finds a value in the body, a header or a cookie of an answer, and With fills it into
// later requests.
func TestValues(t *testing.T) {
	header := http.Header{"Location": {"/cart/7"}, "Set-Cookie": {"theme=dark; Path=/", "sid=abc; HttpOnly"}}
	const body = `{"data": {"token": "t-1", "carts": [{"id": 12345678901234567890}], "none": null}}`
	for place, want := range map[string]string{
		"body /data/token": "t-1", "body /data/carts/0/id": "12345678901234567890", "header location": "/cart/7", "cookie sid": "abc",
		`match "token": "([^"]*)"`: "t-1", "body /data/none": "", "body /data/carts/1/id": "", "body /data/token/x": "", "cookie id": "", "header X": "", "match (zzz)": "",
	} {
		v, err := valueOf("v", place)
		require.NoError(t, err)
		if got, found := v.In(header, body); got != want && found || found != (want != "") {
			t.Errorf("%s: %q, found %t; want %q", place, got, found, want)
		}
	}
	r := Request{Method: "POST", URL: "http://127.0.0.1:8080/cart/{{cart.id}}?b={{buyer}}", Header: map[string]string{"Authorization": "Bearer {{ login.token }}"}, Body: `{"a": {"b": "{{login.token}}"}}`}
	got := r.With(2, map[string]string{"cart.id": "a/b", "login.token": "t/1"})
	if got.URL != "http://127.0.0.1:8080/cart/a%2Fb?b=2" || got.Header["Authorization"] != "Bearer t/1" || got.Body != `{"a": {"b": "t/1"}}` {
		t.Errorf("%+v", got)
	}
	const text = "a+b&c=\"1\"/\\"
	for _, c := range []struct{ kind, body, want string }{
		{"", `{"t": "{{login.token}}", "n": {{buyer}}}`, `{"t": "a+b\u0026c=\"1\"/\\", "n": 2}`},
		{"", ` [ "{{login.token}}" ]`, ` [ "a+b\u0026c=\"1\"/\\" ]`},
		{"application/vnd.api+json; charset=utf-8", `"{{login.token}}"`, `"a+b\u0026c=\"1\"/\\"`},
		{"application/x-www-form-urlencoded", "t={{login.token}}", "t=a%2Bb%26c%3D%221%22%2F%5C"},
		{"application/x-www-form-urlencoded", `{"t": "{{login.token}}"}`, `{"t": "a+b\u0026c=\"1\"/\\"}`}, // curl -d '{...}'
		{"text/plain", "{{login.token}}", text},
		{"", "{{login.token}}", text},
	} {
		one := Request{URL: "http://h/{{login.token}}?t={{login.token}}", Body: c.body, Header: map[string]string{"content-type": c.kind}}.With(2, map[string]string{"login.token": text})
		if one.Body != c.want || one.URL != "http://h/a+b&c=%221%22%2F%5C?t=a%2Bb%26c%3D%221%22%2F%5C" {
			t.Errorf("%s, %s: %s %s; want %s", c.kind, c.body, one.URL, one.Body, c.want)
		}
	}
	if !r.IsPersonal() || (Request{Body: `{"a":{"b":{}}}`}).IsPersonal() {
		t.Error("only a request with a value differs between buyers")
	}
}

// TestScanFile: a file for a scan needs no buyers, and its requests get the header of `buyer`. Load
// refuses a file without buyers.
func TestScanFile(t *testing.T) {
	const buyer = "buyer: POST http://127.0.0.1:8080/buy?item=1"
	scanned := strings.Replace(sound, buyer, `buyer: { header: { Authorization: "Bearer {{login.token}}" } }
before:
  - { name: login, request: "POST http://127.0.0.1:8080/login", body: 'u={{buyer}}', values: { token: body /token } }
requests:
  - GET http://127.0.0.1:8080/items
  - { name: purchase, request: "POST http://127.0.0.1:8080/buy", header: { authorization: none } }`, 1)
	path := t.TempDir() + "/oversell.yaml"
	for _, c := range []struct{ old, by, says string }{
		{"", "", ""},
		{"{{login.token}}", "{{login.tokens}}", `{{login.tokens}}: unknown value "login.tokens" (did you mean "login.token"?)`},
		{"{{login.token}}", "{{token}}", `{{token}}: unknown value "token"`},
		{"u={{buyer}}", "{{ the buyer }}", `before: request 1: {{ the buyer }}: unknown value "the buyer"`},
		{"8080/items", "8080/items?a={{}}", `{{}}: unknown value ""`},
		{"u={{buyer}}", "{{login.token}}", "before: request 1: {{login.token}}: unknown value"},
		{"body /token", "body token", `before: request 1: values: token: "body token"; expected, for example, body /token`},
		{"body /token", "json /token", `values: token: unknown place "json"; choose from: body, cookie, header, match`},
		{"body /token", "match token", "values: token: token: it needs one group, whose text is the value"},
		{"name: login, ", "", "before: request 1: values needs a name"},
		{"GET http://127.0.0.1:8080/items", "GET /items", `requests: the 1.: "/items" is not a URL`},
	} {
		write(t, path, strings.Replace(scanned, c.old, c.by, 1))
		a, err := LoadScan(path)
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v; want one line with %q", err, c.says)
			}
			continue
		}
		require.NoError(t, err)
		if len(a.Requests) != 2 || a.Requests[0].Header["Authorization"] != "Bearer {{login.token}}" || a.Requests[1].Header["Authorization"] != "none" || a.Requests[1].Named != "purchase" || !a.Serial || len(a.Never) > 0 {
			t.Errorf("%+v", a)
		}
		if err := a.Import([]Request{{Method: "GET", URL: "http://127.0.0.1:8080/", Header: map[string]string{"Authorization": "old"}}}); err != nil || a.Requests[2].Header["Authorization"] != "Bearer {{login.token}}" {
			t.Errorf("%v, %+v", err, a.Requests)
		}
		if err := a.Import([]Request{{Method: "GET", URL: "http://127.0.0.1:8080/{{cart.id}}"}}); err == nil {
			t.Error("a value that nothing hands on was imported")
		}
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "shop scan explores the pairs of requests") {
			t.Error(err)
		}
	}
}

// TestDerived: a derived file in another folder describes the same program.
func TestDerived(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/oversell.yaml", strings.Replace(sound, "buyer: POST", "folder: sub\nexcept: [ body /a, items.b ]\nstrict: true\nrequests: [ GET http://127.0.0.1:8080/ ]\nbuyer: POST", 1))
	if both, err := Load(dir + "/oversell.yaml"); err != nil || both.Scanned {
		t.Errorf("%v: a file with buyers and requests is no scan", err)
	}
	a, err := LoadScan(dir + "/oversell.yaml")
	require.NoError(t, err)
	one := Request{Method: "POST", URL: "http://127.0.0.1:8080/buy", Header: map[string]string{"A": "b"}, Body: `{"a": 1}`}
	text, err := a.Derived(dir+"/races/pair", []Request{one, {Method: "GET", URL: "http://127.0.0.1:8080/"}}, []string{"items.b"})
	require.NoError(t, err)
	pair := t.TempDir() + "/oversell.yaml"
	write(t, pair, string(text))
	b, err := Load(pair)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if b.Name != a.Name || len(b.Buyers) != 2 || b.Buyers[0].Body != one.Body || b.Buyers[0].Header["A"] != "b" || b.Buyers[1].Method != "GET" || !b.Serial || len(b.Never) > 0 || len(b.Requests) > 0 || !a.Scanned || b.Scanned || !b.Strict {
		t.Errorf("%+v\n%s", b, text)
	}
	if len(b.Except) != 1 || !b.Sold.Has(302, "") || !strings.HasSuffix(a.Dir, "/sub") || !strings.Contains(string(text), "folder: ../../sub\n") {
		t.Errorf("%s: %+v\n%s", a.Dir, b, text)
	}
}
