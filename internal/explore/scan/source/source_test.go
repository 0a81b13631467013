package source

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/require"
)

const origin = "http://127.0.0.1:8080"

// text returns a request in one line: its method, URL, headers and body.
func text(r app.Request) string {
	line := r.Method + " " + r.URL
	var names []string
	for name, value := range r.Header {
		names = append(names, fmt.Sprintf(" [%s: %s]", name, value))
	}
	slices.Sort(names)
	return strings.TrimSpace(line + strings.Join(names, "") + " " + r.Body)
}

// TestFormats checks the requests that each format yields, and the line for each request that it cannot
// use.
func TestFormats(t *testing.T) {
	for _, c := range []struct {
		name, text string
		read       func([]byte, string) ([]app.Request, []string, error)
		want       []string // requests, and then "-" and the lines of unused requests
		fails      string
	}{
		{name: "curl", read: Curl, text: `# from the browser
curl 'http://localhost:8080/buy?item=1' \
  -X POST -H 'Content-Type: application/json' -H 'Content-Length: 9' --compressed \
  --data-raw '{"a": "b c"}' ;
curl -sS http://127.0.0.1:8080/cart/{{cart.id}} -H "Authorization: Bearer {{login.token}}"
curl -d a=1 -d b=2 127.0.0.1:8080/form
curl -XDELETE --url=http://127.0.0.1:8080/cart -u me:secret
curl -G -d q=x http://127.0.0.1:8080/find
`, want: []string{
			`POST http://127.0.0.1:8080/buy?item=1 [Content-Type: application/json] {"a": "b c"}`,
			"GET http://127.0.0.1:8080/cart/{{cart.id}} [Authorization: Bearer {{login.token}}]",
			"DELETE http://127.0.0.1:8080/cart [Authorization: Basic bWU6c2VjcmV0]",
			"GET http://127.0.0.1:8080/find?q=x",
			`- command 3: "127.0.0.1:8080/form" does not go to http://127.0.0.1:8080, where the program serves: change its URL`,
		}},
		{name: "curl, what it shortens", read: Curl, text: `curl -sSL -d '' http://127.0.0.1:8080/buy
curl -fsS http://127.0.0.1:8080/a -A curl && curl -sX PUT http://127.0.0.1:8080/b -b 'sid=1; k=2'
curl -sXPUT http://127.0.0.1:8080/c
curl -sGd '' http://127.0.0.1:8080/d
`, want: []string{
			"POST http://127.0.0.1:8080/buy [Content-Type: application/x-www-form-urlencoded]",
			"GET http://127.0.0.1:8080/a [User-Agent: curl]",
			"PUT http://127.0.0.1:8080/b [Cookie: sid=1; k=2]",
			"PUT http://127.0.0.1:8080/c",
			"GET http://127.0.0.1:8080/d",
		}},
		{name: "curl, cookies", read: Curl, text: "curl -b cookies.txt http://127.0.0.1:8080/", fails: "command 1: -b cookies.txt names a file: write the cookies themselves"},
		{name: "curl, two URLs", read: Curl, text: "curl http://127.0.0.1:8080/a http://127.0.0.1:8080/b", fails: "command 1: it has two URLs, http://127.0.0.1:8080/a and http://127.0.0.1:8080/b: write a command for each"},
		{name: "curl, quotes", read: Curl, text: "curl 'http://x", fails: "it is no list of curl commands: Unterminated single-quoted string"},
		{name: "curl, option", read: Curl, text: "curl -T f http://127.0.0.1:8080/", fails: "command 1: the option -T is not supported: leave it out"},
		{name: "curl, file", read: Curl, text: "curl -d @f http://127.0.0.1:8080/", fails: "command 1: -d @f names a file: write the body itself"},
		{name: "another command", read: Curl, text: "wget http://127.0.0.1:8080/", fails: `command 1 begins with "wget"; expected curl`},

		{
			name: "HAR", read: HAR, text: `{"log": {"entries": [
			{"request": {"method": "POST", "url": "http://localhost:8080/buy", "headers": [{"name": ":path", "value": "/buy"}, {"name": "content-type", "value": "application/json"}, {"name": "Accept-Encoding", "value": "br"}], "postData": {"text": "{}"}}},
			{"request": {"method": "POST", "url": "http://localhost:8080/buy", "headers": [], "postData": {"text": "{}"}}},
			{"request": {"method": "POST", "url": "http://localhost:8080/login", "headers": [], "postData": {"params": [{"name": "user", "value": "a b"}]}}},
			{"request": {"method": "GET", "url": "http://localhost:8080/cart", "headers": [{"name": "Cookie", "value": "sid=1"}]}},
			{"request": {"method": "GET", "url": "http://localhost:8080/cart", "headers": [{"name": "Cookie", "value": "sid=2"}, {"name": "Referer", "value": "/a"}]}},
			{"request": {"method": "GET", "url": "http://localhost:8080/cart", "headers": [{"name": "Cookie", "value": "sid=2"}, {"name": "Referer", "value": "/b"}]}},
			{"request": {"method": "GET", "url": "https://fonts.example.com/a.css", "headers": []}}]}}`,
			want: []string{"POST http://127.0.0.1:8080/buy [Content-Type: application/json] {}", "POST http://127.0.0.1:8080/login user=a+b", "GET http://127.0.0.1:8080/cart [Cookie: sid=1]", "GET http://127.0.0.1:8080/cart [Cookie: sid=2] [Referer: /a]"},
		},
		{name: "HAR of another site", read: HAR, text: `{"log": {"entries": [{"request": {"method": "GET", "url": "https://example.com/"}}]}}`, fails: "none of its 1 requests goes to http://127.0.0.1:8080, where the program serves: record it there"},
		{name: "no HAR", read: HAR, text: "<html>", fails: "it is no HAR file: "},

		{name: "OpenAPI", read: OpenAPI, text: `openapi: 3.0.3
servers: [ { url: "https://shop.example.com/v1/" } ]
paths:
  /items/{id}:
    parameters: [ { $ref: "#/components/parameters/Id" } ]
    get: {}
    put:
      parameters: [ { name: dry, in: query, schema: { type: boolean, default: false } }, { name: X-Shop, in: header, example: de } ]
      requestBody: { content: { application/json: { schema: { $ref: "#/components/schemas/Item" } } } }
  /orders:
    post:
      requestBody: { required: true, content: { application/json: { examples: { one: { value: { item: 1, units: [ 2 ] } } } } } }
    get: { parameters: [ { name: page, in: query, schema: { type: integer } } ] }
  /reviews:
    post: { requestBody: { required: true, content: { application/json: { schema: { type: object, required: [ text ], properties: { text: { type: string } } } } } } }
  /search:
    get: { parameters: [ { name: q, in: query, required: true, schema: { type: string } } ] }
  /upload:
    post: { requestBody: { required: true, content: { image/png: {} } } }
components:
  parameters: { Id: { name: id, in: path, required: true, example: a/1 } }
  schemas:
    Item: { allOf: [ { properties: { name: { type: string, example: apple }, parent: { $ref: "#/components/schemas/Item" } } } ], required: [ name ], properties: { size: { enum: [ S, L ] } } }
`, want: []string{
			"GET http://127.0.0.1:8080/v1/items/a%2F1",
			`PUT http://127.0.0.1:8080/v1/items/a%2F1?dry=false [Content-Type: application/json] [X-Shop: de] {"name":"apple","parent":`,
			"GET http://127.0.0.1:8080/v1/orders",
			`POST http://127.0.0.1:8080/v1/orders [Content-Type: application/json] {"item":1,"units":[2]}`,
			"- POST /reviews: its body has no example: add `example:` to it",
			"- GET /search: its parameter q has no example: add `example:` to it",
			"- POST /upload: its body is neither JSON nor a form, but image/png",
		}},
		{name: "OpenAPI, values", read: OpenAPI, text: `openapi: 3.0.3
paths:
  /cart/{id}:
    parameters: [ { name: id, in: path, example: "{{ cart.id }}" }, { name: of, in: query, example: "{{login.token}}" } ]
    get: {}
    post: { requestBody: { content: { application/x-www-form-urlencoded: { example: { t: "a {{ login.token }}" } } } } }
    put: { requestBody: { content: { application/json: { example: { t: "{{login.token}}" } } } } }
`, want: []string{
			"GET http://127.0.0.1:8080/cart/{{cart.id}}?of={{login.token}}",
			"POST http://127.0.0.1:8080/cart/{{cart.id}}?of={{login.token}} [Content-Type: application/x-www-form-urlencoded] t=a+{{login.token}}",
			`PUT http://127.0.0.1:8080/cart/{{cart.id}}?of={{login.token}} [Content-Type: application/json] {"t":"{{login.token}}"}`,
		}},
		{name: "Swagger 2", read: OpenAPI, text: "swagger: '2.0'", fails: "it is no OpenAPI 3 document (no key openapi: 3.x)"},
		{name: "no YAML", read: OpenAPI, text: "a: [", fails: "it is no OpenAPI document: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			requests, unused, err := c.read([]byte(c.text), origin)
			if c.fails != "" {
				if err == nil || !strings.HasPrefix(err.Error(), c.fails) || strings.Contains(err.Error(), "\n") {
					t.Fatalf("%v; want one line that begins with %q", err, c.fails)
				}
				return
			}
			require.NoError(t, err)
			var got []string
			for _, r := range requests {
				got = append(got, text(r))
			}
			for _, line := range unused {
				got = append(got, "- "+line)
			}
			if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}
