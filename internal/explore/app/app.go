// Package app has the file that describes a program to explore, in any language, and the
// user's servers, asked beside the gates.
package app

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
)

// An App is a program, as its file describes it.
type App struct {
	allowed string // of Guard
	Name    string // letters, digits, dots, underscores and hyphens
	Dir     string // the file's; commands run there, and paths are of it

	// One of these three starts the program.
	Run    []string // a command line an instance: one for all buyers' instances, or one a buyer
	Shared string   // the command line of one instance for all buyers
	Attach *Attach  // one that runs already

	Ready       string        // a URL that is asked until it answers below 500; "": the buyers' port takes connections
	ReadyWithin time.Duration // how long the program may take to start
	Env         map[string]string

	MySQL, Postgres, Redis *Server // nil: not gated
	Local                  bool    // they are private ones, and go with the command
	Schema                 string  // a file with SQL for a private database; "": none

	Buyers []Request
	Reset  Reset
	Sold   []int    // answers that mean a sale
	Pauses bool     // the owner vouches for pauses that are too short to explore
	Atomic bool     // the owner vouches for statements that read and write
	Never  []string // queries of which each must return no row
	Watch  string   // a query whose first row is shown after each step; "": none

	file     string
	template *Request // of `buyer:`; nil: each buyer has its own
}

// Attach is a program that runs already, and was told where the gates are.
type Attach struct {
	PID int // of its first process
}

// A Server is one of the user's.
type Server struct {
	Gate    string // where the program looks for it: host:port
	Address string // where it is: as Gate, but for a program that runs already
	URL     string // how it is asked beside the gate; "": at Address, with the usual user
}

// A Request is what a buyer sends.
type Request struct {
	Method, URL string
	Header      map[string]string
	Body        string
}

// A Reset is what brings the servers to the state that each run begins with.
type Reset struct {
	MySQL, Postgres []string
	Flush           bool // of Redis: the database number that the URL names
	Redis           [][]string
}

// Bounds of a file.
const (
	minBuyers = 2
	maxBuyers = 8
)

// file is what stands in it.
type file struct {
	Name        string            `yaml:"name"`
	Run         any               `yaml:"run"`
	Shared      string            `yaml:"shared"`
	Attach      *attach           `yaml:"attach"`
	Ready       string            `yaml:"ready"`
	ReadyWithin string            `yaml:"ready-within"`
	Env         map[string]string `yaml:"env"`
	MySQL       string            `yaml:"mysql"`
	Postgres    string            `yaml:"postgres"`
	Redis       string            `yaml:"redis"`
	Local       bool              `yaml:"local"`
	Schema      string            `yaml:"schema"`
	Buyers      any               `yaml:"buyers"`
	Buyer       any               `yaml:"buyer"`
	Reset       reset             `yaml:"reset"`
	Sold        any               `yaml:"sold"`
	Atomic      string            `yaml:"atomic"`
	Pauses      string            `yaml:"pauses"`
	Never       []string          `yaml:"never"`
	Watch       string            `yaml:"watch"`
}

type attach struct {
	PID   int               `yaml:"pid"`
	Gates map[string]string `yaml:"gates"`
}

type reset struct {
	SQL      []string `yaml:"sql"`
	MySQL    []string `yaml:"mysql"`
	Postgres []string `yaml:"postgres"`
	Redis    any      `yaml:"redis"`
}

// known are the keys of a file, for an error.
var known = []string{
	"name", "run", "shared", "attach", "ready", "ready-within", "env", "mysql", "postgres", "redis", "local", "schema",
	"buyers", "buyer", "reset", "sold", "atomic", "pauses", "never", "watch", "sql", "pid", "gates",
}

// Load reads a file. The error is one line: the file, the line where it is known, and what
// to do.
func Load(path string) (*App, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--app: %w; "+seeExample, err)
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	a, err := parse(text, dir)
	if err != nil {
		return nil, fmt.Errorf("%s%w", path, err)
	}
	a.file = path
	return a, nil
}

// parse reads a file's text. Its errors begin with ":LINE: " or ": ".
func parse(text []byte, dir string) (*App, error) {
	var f file
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, errors.New(": the file is empty; " + seeExample)
	}
	if err := yaml.UnmarshalWithOptions(text, &f, yaml.Strict()); err != nil {
		return nil, wrong(err)
	}
	a := &App{Name: f.Name, Dir: dir, Shared: f.Shared, Ready: f.Ready, Env: f.Env, Local: f.Local, Never: f.Never, Watch: f.Watch, Atomic: f.Atomic != "", Pauses: f.Pauses != ""}
	if a.Pauses && f.Pauses != "accepted" {
		return nil, fmt.Errorf(": pauses: %q; the only value is accepted: you vouch that no pausing buyer relies on its pooled connection; omit the key otherwise", f.Pauses)
	}
	if a.Atomic && f.Atomic != "accepted" {
		return nil, fmt.Errorf(": atomic: %q; the only value is accepted: you vouch that no other write comes between a statement's read and its write; omit the key otherwise", f.Atomic)
	}
	if a.Name == "" {
		a.Name = filepath.Base(dir)
	}
	a.Name = strings.Trim(notInNames.ReplaceAllString(a.Name, "-"), "-.")
	for _, step := range []func(*App, *file) error{
		(*App).program, (*App).servers, (*App).buyers, (*App).places, (*App).resetting, (*App).sold, (*App).queries,
	} {
		if err := step(a, &f); err != nil {
			return nil, fmt.Errorf(": %w", err)
		}
	}
	return a, nil
}

// seeExample is what to do where a file has nothing that could be mended.
const seeExample = "shop explore --app-example prints a file to begin with"

var notInNames = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// place and unknown are in what the YAML library says.
var (
	place   = regexp.MustCompile(`^\[(\d+):\d+\] (.*)`)
	unknown = regexp.MustCompile(`unknown field "(.*)"`)
)

// wrong is one line of what the YAML library says.
func wrong(err error) error {
	first, _, _ := strings.Cut(err.Error(), "\n")
	line := ": "
	if m := place.FindStringSubmatch(first); m != nil {
		line, first = ":"+m[1]+": ", m[2]
	}
	m := unknown.FindStringSubmatch(first)
	if m == nil {
		return fmt.Errorf("%s%s; "+seeExample, line, first)
	}
	if near := nearest(m[1]); near != "" {
		return fmt.Errorf("%sunknown key %q; did you mean %s?", line, m[1], near)
	}
	return fmt.Errorf("%sunknown key %q; shop explore --app-example has all there are", line, m[1])
}

// nearest is the key that is at most two letters away; "" if none is.
func nearest(key string) (best string) {
	least := 3
	for _, k := range known {
		if d := distance(key, k); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance is Levenshtein's.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			before, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, before+cost)
		}
	}
	return row[len(b)]
}

// strings of a value that is one or a list.
func listOf(key string, v any) ([]string, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case string:
		return []string{v}, nil
	case []any:
		var all []string
		for _, e := range v {
			s, ok := e.(string)
			if !ok {
				return nil, fmt.Errorf("%s: %v is no text", key, e)
			}
			all = append(all, s)
		}
		return all, nil
	}
	return nil, fmt.Errorf("%s: give a text or a list of them", key)
}

// program reads what starts it.
func (a *App) program(f *file) (err error) {
	if a.Run, err = listOf("run", f.Run); err != nil {
		return err
	}
	ways := 0
	for _, given := range []bool{len(a.Run) > 0, a.Shared != "", f.Attach != nil} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return errors.New("give one of run (an instance a buyer), shared (one instance for all buyers) and attach (a program that runs already)")
	}
	if f.Attach != nil {
		if f.Attach.PID <= 0 {
			return errors.New("attach: give pid, the number of the program's first process, and gates, where it looks for each server")
		}
		a.Attach = &Attach{PID: f.Attach.PID}
	}
	a.ReadyWithin = 30 * time.Second
	if f.ReadyWithin != "" {
		if a.ReadyWithin, err = time.ParseDuration(f.ReadyWithin); err != nil || a.ReadyWithin <= 0 {
			return fmt.Errorf("ready-within: %q is no time; give 30s", f.ReadyWithin)
		}
	}
	if a.Ready != "" {
		return checkURL("ready", a.Ready)
	}
	return nil
}

// checkURL: the gate speaks HTTP as it is.
func checkURL(key, text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "":
		return fmt.Errorf("%s: %q is no URL; one looks like http://127.0.0.1:8080/buy?item=1", key, text)
	case u.Scheme != "http":
		return fmt.Errorf("%s: %q: only http:// is spoken here; have the program serve without TLS for the test", key, text)
	}
	return nil
}

// servers reads where they are.
func (a *App) servers(f *file) error {
	for _, s := range []struct {
		key, text string
		to        **Server
	}{{"mysql", f.MySQL, &a.MySQL}, {"postgres", f.Postgres, &a.Postgres}, {"redis", f.Redis, &a.Redis}} {
		if s.text == "" {
			continue
		}
		server, err := parseServer(s.key, s.text)
		if err != nil {
			return err
		}
		*s.to = server
		if f.Attach == nil {
			continue
		}
		if server.Gate = f.Attach.Gates[s.key]; server.Gate == "" {
			return fmt.Errorf("attach: gates has no %s: the address at which the program looks for it, which is not the server's own", s.key)
		}
		if err := checkAddress("attach: gates: "+s.key, server.Gate); err != nil {
			return err
		}
		if server.Gate == server.Address {
			return fmt.Errorf("attach: gates: %s: %s is where the server itself is; give another port, and tell it to the program", s.key, server.Gate)
		}
	}
	if f.Attach != nil {
		for name := range f.Attach.Gates {
			if a.server(name) == nil {
				return fmt.Errorf("attach: gates: %s: give %[1]s, too: where the server is", name)
			}
		}
	}
	if a.MySQL == nil && a.Postgres == nil && a.Redis == nil {
		return errors.New("give mysql, postgres or redis: where the program looks for it; without a server there is nothing to gate")
	}
	if a.Local && a.Attach != nil {
		return errors.New("local and attach: private servers are in the program's own network, and a program that runs already is not there; leave one out")
	}
	if f.Schema != "" {
		if !a.Local {
			return errors.New("schema is for local: true; your own servers have their tables")
		}
		a.Schema = filepath.Join(a.Dir, f.Schema)
		if filepath.IsAbs(f.Schema) {
			a.Schema = f.Schema
		}
		if _, err := os.Stat(a.Schema); err != nil {
			return fmt.Errorf("schema: %w", err)
		}
	}
	return nil
}

// schemes are those of a server's URL.
var schemes = map[string][]string{"mysql": {"mysql"}, "postgres": {"postgres", "postgresql"}, "redis": {"redis"}}

// parseServer reads host:port, or a URL.
func parseServer(key, text string) (*Server, error) {
	if !strings.Contains(text, "://") {
		return &Server{Gate: text, Address: text}, checkAddress(key, text)
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: what stands there is no URL", key) // it may have a password
	}
	switch {
	case !slices.Contains(schemes[key], u.Scheme):
		return nil, fmt.Errorf("%s: a URL begins with %s:// here; TLS (rediss, mysqls) cannot be gated", key, schemes[key][0])
	case u.Query().Has("host"), u.Query().Has("hostaddr"):
		return nil, fmt.Errorf("%s: ?host= names another server than the URL does; put it into the URL", key)
	}
	if mode := u.Query().Get("sslmode"); mode != "" && mode != "disable" {
		return nil, fmt.Errorf("%s: sslmode=%s: TLS cannot be gated; give sslmode=disable", key, mode)
	}
	return &Server{Gate: u.Host, Address: u.Host, URL: text}, checkAddress(key, u.Host)
}

func checkAddress(key, address string) error {
	if strings.HasPrefix(address, "/") || strings.HasPrefix(address, "unix") {
		return fmt.Errorf("%s: %s: a gate cannot stand at a unix socket; have the program connect by 127.0.0.1 and a port", key, address)
	}
	host, port, err := net.SplitHostPort(address)
	n, bad := strconv.Atoi(port)
	if err != nil || bad != nil || host == "" || n < 1 || n > 65535 {
		return fmt.Errorf("%s: %q is no host:port, as 127.0.0.1:3306 is", key, address)
	}
	return nil
}

// buyers reads what each sends.
func (a *App) buyers(f *file) error {
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
			return errors.New("give buyer, what a buyer sends: POST http://127.0.0.1:8080/buy?item=1")
		}
		return a.SetBuyers(minBuyers)
	case uint64:
		if a.template == nil {
			return errors.New("buyers is a number, and buyer, what each sends, is missing")
		}
		return a.SetBuyers(int(min(b, maxBuyers+1)))
	case []any:
		if a.template != nil {
			return errors.New("buyers is a list, so each has a request of its own: leave buyer out")
		}
		for n, one := range b {
			r, err := request(fmt.Sprintf("buyers: the %d.", n+1), one)
			if err != nil {
				return err
			}
			a.Buyers = append(a.Buyers, r)
		}
	default:
		return errors.New("buyers: give a number, or a list of requests")
	}
	return a.countBuyers()
}

// SetBuyers has so many buyers send the file's one request. The error is one line.
func (a *App) SetBuyers(n int) error {
	if a.template == nil {
		if n == len(a.Buyers) {
			return nil
		}
		return fmt.Errorf("--buyers %d: the file has a list of %d requests; add to it, or take from it", n, len(a.Buyers))
	}
	if n < minBuyers || n > maxBuyers {
		return fmt.Errorf("%d buyers; %d to %d are allowed", n, minBuyers, maxBuyers)
	}
	a.Buyers = slices.Repeat([]Request{*a.template}, n)
	return a.countBuyers()
}

func (a *App) countBuyers() error {
	switch n := len(a.Buyers); {
	case n < minBuyers || n > maxBuyers:
		return fmt.Errorf("%d buyers; %d to %d are allowed", n, minBuyers, maxBuyers)
	case len(a.Run) > 1 && len(a.Run) != n:
		return fmt.Errorf("run has %d command lines, and there are %d buyers: give one for all, or one for each", len(a.Run), n)
	}
	return nil
}

// token is what a method and the name of a header are (RFC 9110, 5.6.2).
var token = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// request reads "METHOD URL", or a map with header and body.
func request(key string, v any) (r Request, _ error) {
	line, ok := v.(string)
	if m, is := v.(map[string]any); is {
		line, ok = m["request"].(string)
		for name, value := range m {
			switch name {
			case "request":
			case "body":
				r.Body = fmt.Sprint(value)
			case "header":
				all, is := value.(map[string]any)
				if !is {
					return r, fmt.Errorf("%s: header: give a map, as { Content-Type: application/json }", key)
				}
				r.Header = map[string]string{}
				for h, text := range all {
					r.Header[h] = fmt.Sprint(text)
				}
			default:
				return r, fmt.Errorf("%s: unknown key %q; there are request, header and body", key, name)
			}
		}
	}
	method, target, found := strings.Cut(line, " ")
	if !ok || !found || method != strings.ToUpper(method) {
		return r, fmt.Errorf("%s: give METHOD URL, as POST http://127.0.0.1:8080/buy?item=1", key)
	}
	r.Method, r.URL = method, strings.TrimSpace(target)
	if !token.MatchString(method) {
		return r, fmt.Errorf("%s: %q is no method of HTTP; give METHOD URL, as POST http://127.0.0.1:8080/buy?item=1", key, method)
	}
	for name, value := range r.Header {
		if !token.MatchString(name) || strings.ContainsAny(value, "\r\n\x00") {
			return r, fmt.Errorf("%s: header: %q with %q is no header of HTTP", key, name, value)
		}
	}
	return r, checkURL(key, r.URL)
}

// word is one of a command for Redis; one in quotes may have spaces, or nothing, in it.
var word = regexp.MustCompile(`"[^"]*"|'[^']*'|\S+`)

// resetting reads what each run begins with.
func (a *App) resetting(f *file) error {
	a.Reset.MySQL, a.Reset.Postgres = f.Reset.MySQL, f.Reset.Postgres
	if len(f.Reset.SQL) > 0 {
		switch {
		case a.MySQL != nil && a.Postgres != nil:
			return errors.New("reset: sql: there are two databases; give mysql and postgres in its place")
		case a.MySQL != nil:
			a.Reset.MySQL = append(a.Reset.MySQL, f.Reset.SQL...)
		case a.Postgres != nil:
			a.Reset.Postgres = append(a.Reset.Postgres, f.Reset.SQL...)
		default:
			return errors.New("reset: sql: no mysql and no postgres is given")
		}
	}
	switch {
	case len(a.Reset.MySQL) > 0 && a.MySQL == nil:
		return errors.New("reset: mysql: no mysql is given")
	case len(a.Reset.Postgres) > 0 && a.Postgres == nil:
		return errors.New("reset: postgres: no postgres is given")
	}
	lines, err := listOf("reset: redis", f.Reset.Redis)
	if err != nil {
		return err
	}
	if len(lines) > 0 && a.Redis == nil {
		return errors.New("reset: redis: no redis is given")
	}
	for _, line := range lines {
		words := word.FindAllString(line, -1)
		for i, w := range words {
			if len(w) > 1 && (w[0] == '"' || w[0] == '\'') {
				words[i] = w[1 : len(w)-1]
			}
		}
		switch {
		case len(words) == 0:
			return errors.New("reset: redis: an empty command")
		case strings.EqualFold(words[0], "select"):
			return errors.New("reset: redis: select: the number of the database belongs into the URL, redis://127.0.0.1:6379/1; flushall empties all")
		case strings.EqualFold(line, "flushdb"):
			a.Reset.Flush = true
		default:
			a.Reset.Redis = append(a.Reset.Redis, words)
		}
	}
	if len(a.Reset.MySQL)+len(a.Reset.Postgres)+len(lines) == 0 {
		return errors.New("give reset: what brings stock and orders back before each run, as sql: [ \"UPDATE items SET stock = 1\", \"DELETE FROM orders\" ]")
	}
	return nil
}

// sold reads which answers mean a sale: 200, a list, or 2xx.
func (a *App) sold(f *file) error {
	all, ok := f.Sold.([]any)
	if !ok && f.Sold != nil {
		all = []any{f.Sold}
	}
	if f.Sold == nil {
		all = []any{"2xx"}
	}
	for _, one := range all {
		switch s := one.(type) {
		case uint64:
			if s < 100 || s > 599 {
				return fmt.Errorf("sold: %d is no status of HTTP", s)
			}
			a.Sold = append(a.Sold, int(s))
		case string:
			if len(s) != 3 || s[1:] != "xx" || s[0] < '1' || s[0] > '5' {
				return fmt.Errorf("sold: %q is no status of HTTP; give 200, a list, or 2xx", s)
			}
			for n := range 100 {
				a.Sold = append(a.Sold, int(s[0]-'0')*100+n)
			}
		default:
			return errors.New("sold: give 200, a list, or 2xx")
		}
	}
	return nil
}

// queries checks that there are any.
func (a *App) queries(*file) error {
	switch {
	case len(a.Never) == 0:
		return errors.New("give never: queries of which each must return no row, as SELECT * FROM items WHERE stock < 0")
	case a.MySQL == nil && a.Postgres == nil:
		return errors.New("never: there is no database to ask; give mysql or postgres")
	}
	for _, query := range append(slices.Clone(a.Never), a.Watch) {
		if _, _, err := a.addressed(query); err != nil {
			return err
		}
	}
	return nil
}

// addressed is the protocol of the database that a query goes to, and the query without it.
func (a *App) addressed(query string) (protocol, rest string, _ error) {
	for _, name := range []string{"mysql", "postgres"} {
		if rest, found := strings.CutPrefix(query, name+":"); found {
			if a.Gate(name) == "" {
				return "", "", fmt.Errorf("%q: no %s is given", query, name)
			}
			return name, strings.TrimSpace(rest), nil
		}
	}
	switch {
	case query == "":
		return "", "", nil
	case a.MySQL != nil && a.Postgres != nil:
		return "", "", fmt.Errorf("%q: there are two databases; write mysql: or postgres: before it", query)
	case a.MySQL != nil:
		return "mysql", query, nil
	}
	return "postgres", query, nil
}

// Gate is where the program looks for a server, by the protocol's name; "" if it is not gated.
func (a *App) Gate(protocol string) string {
	if s := a.server(protocol); s != nil {
		return s.Gate
	}
	return ""
}

func (a *App) server(protocol string) *Server {
	return map[string]*Server{"mysql": a.MySQL, "postgres": a.Postgres, "redis": a.Redis}[protocol]
}
