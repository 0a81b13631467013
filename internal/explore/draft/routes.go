package draft

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A Route is a request that may be a sale.
type Route struct {
	Method, Path string
	Fields       []string // names of the values that the handler reads from the body
	Query        []string // names of the values that it reads from the query
	Because      string

	score int
}

// routers match the definition of a route. The groups are method and path. Without a method, the route
// is a POST. Without a path, the path of the class applies.
var routers = []struct {
	files  string // endings of file names
	route  *regexp.Regexp
	prefix *regexp.Regexp // matches the path before each route of the file; nil: none
}{
	{".js .ts .mjs .cjs", regexp.MustCompile("\\.(?P<method>get|post|put|patch)\\(\\s*['\"`](?P<path>/[^'\"`]*)['\"`]"), nil},                                 // Express, Fastify, Koa
	{".ts", regexp.MustCompile(`@(?P<method>Get|Post|Put|Patch)\(\s*(?:['"](?P<path>[^'"]*)['"])?\s*\)`), regexp.MustCompile(`@Controller\(\s*['"]([^'"]*)`)}, // NestJS
	{".js .ts .mjs .cjs", regexp.MustCompile(`pathname\s*[!=]==?\s*['"](?P<path>/[^'"]*)['"]`), nil},                                                          // node:http
	{".php", regexp.MustCompile(`Route::(?P<method>get|post|put|patch)\(\s*['"](?P<path>[^'"]+)['"]`), nil},                                                   // Laravel
	{".php", regexp.MustCompile(`#\[Route\(\s*(?:path:\s*)?['"](?P<path>[^'"]+)['"](?:[^\]]*?methods:\s*\[?\s*['"](?P<method>\w+))?`), nil},                   // Symfony
	{".py", regexp.MustCompile(`@\w+\.route\(\s*['"](?P<path>[^'"]+)['"](?:[^)]*?methods\s*=\s*[\[(]\s*['"](?P<method>\w+))?`), regexp.MustCompile(`url_prefix\s*=\s*['"]([^'"]+)`)},
	{".py", regexp.MustCompile(`@\w+\.(?P<method>get|post|put|patch)\(\s*['"](?P<path>[^'"]*)['"]`), regexp.MustCompile(`APIRouter\([^)]*?prefix\s*=\s*['"]([^'"]+)`)}, // FastAPI
	{"urls.py", regexp.MustCompile(`\b(?:re_)?path\(\s*r?['"]\^?(?P<path>[^'"$]*)\$?['"]`), nil},                                                                       // Django
	{".py", regexp.MustCompile(`\.path(?:\.\w+\([^)]*\))?\s*[!=]=\s*['"](?P<path>/[^'"]*)['"]`), nil},                                                                  // http.server
	{"routes.rb", regexp.MustCompile(`(?m)^\s*(?P<method>get|post|put|patch)\s+['"](?P<path>[^'"]+)['"]`), nil},                                                        // Rails
	{"routes.rb", regexp.MustCompile(`(?m)^\s*resources?\s+:(?P<path>\w+)`), nil},
	{".rb", regexp.MustCompile(`(?m)^\s*(?P<method>get|post|put|patch)\s+['"](?P<path>/[^'"]+)['"]\s+do`), nil}, // Sinatra
	{".java .kt", regexp.MustCompile(`@(?P<method>Get|Post|Put|Patch)Mapping(?:\(\s*(?:(?:value|path)\s*=\s*)?\{?\s*"(?P<path>[^"]*)"|\b)`), regexp.MustCompile(`@RequestMapping\(\s*(?:(?:value|path)\s*=\s*)?\{?\s*"([^"]+)"`)},
	{".java", regexp.MustCompile(`createContext\(\s*"(?P<path>[^"]+)"`), nil},
	{".go", regexp.MustCompile(`\.(?P<method>GET|POST|PUT|PATCH|Get|Post|Put|Patch)\(\s*"(?P<path>[^"]*)"`), nil},  // Gin, Echo, chi, Fiber
	{".go", regexp.MustCompile(`Handle(?:Func)?\(\s*"(?:(?P<method>GET|POST|PUT|PATCH) )?(?P<path>/[^"]*)"`), nil}, // net/http
}

// The expressions in `words` match names for a sale, such as "checkout". The most reliable comes first.
var words = []*regexp.Regexp{
	regexp.MustCompile(`(?i)\b(?:buy|purchases?|checkouts?|place[-_]?order)\b`),
	regexp.MustCompile(`(?i)\b(?:orders?|reserv(?:e|ations?)|book(?:ings?)?|redeem|claims?|seckill|tickets?)\b`),
	regexp.MustCompile(`(?i)(?:buy|purchase|checkout|order|reserv|redeem|claim)`),
}

// spoilt matches requests, such as a refund, that have a word for a sale and do not sell.
var spoilt = regexp.MustCompile(`(?i)cancel|refund|status|histor|webhook|callback|admin|confirm|payment|/me\b|search|return|review|coupon`)

// ofUsers matches requests about accounts and files.
var ofUsers = regexp.MustCompile(`(?i)log-?(?:in|out)|sign-?(?:in|up|out)|regist|auth|token|session|user|password|upload`)

// mount matches the path at which Express mounts a router: app.use('/api/orders', ...).
var mount = regexp.MustCompile("\\buse\\(\\s*['\"`](/[^'\"`]*)['\"`]")

func readRoutes(r *repository, d *Draft) {
	var mounts []string
	for _, file := range r.match("**/*.js", "**/*.ts", "**/*.mjs", "**/*.cjs") {
		mounts = append(mounts, groups(mount, r.text(file))...)
	}
	var all, posts []Route
	for _, file := range r.files {
		for _, router := range routers {
			if !endsIn(file, router.files) {
				continue
			}
			text := r.text(file)
			for _, at := range router.route.FindAllStringSubmatchIndex(text, -1) {
				group := func(name string) string {
					if i := router.route.SubexpIndex(name); i >= 0 && at[2*i] >= 0 {
						return text[at[2*i]:at[2*i+1]]
					}
					return ""
				}
				one := Route{Method: strings.ToUpper(cmp.Or(group("method"), "POST")), Path: group("path"), Because: file + " has this route"}
				if router.prefix != nil {
					if m := router.prefix.FindStringSubmatch(text); m != nil {
						one.Path = m[1] + "/" + one.Path
					}
				}
				ofRouter := strings.HasSuffix(strings.ToLower(text[:at[0]]), "router")
				written := one.Path
				one.mounted(file, mounts)
				if own := group("path"); len(own) > 1 && strings.HasSuffix(own, "/") { // without the final slash, Django answers a POST with an error
					one.Path += "/"
				}
				one.rate()
				one.readFields(text[at[0]:min(len(text), at[1]+handlerSize)])
				if m := view.FindStringSubmatch(text[at[1]:]); m != nil && strings.HasSuffix(file, "urls.py") {
					one.readFields(r.function(m[1]))
				}
				if one.score == 0 && strings.EqualFold(group("method"), "POST") && !spoilt.MatchString(one.Path) && !ofUsers.MatchString(one.Path) {
					if ofRouter && len(mounts) == 1 && one.Path == path.Clean("/"+written) {
						one.Path = path.Join(mounts[0], one.Path)
					}
					one.Because = file + " has the only POST route"
					posts = append(posts, one)
				}
				if one.score > 0 && !slices.ContainsFunc(all, func(other Route) bool { return other.Method == one.Method && other.Path == one.Path }) {
					all = append(all, one)
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Route) int { return b.score - a.score })
	if (len(all) == 0 || all[0].Method != "POST") && len(posts) == 1 {
		all = slices.Insert(all, 0, posts[0])
	}
	if len(all) > 0 {
		d.Buy, d.Others = &all[0], all[1:min(len(all), 1+maxOthers)]
	}
}

const maxOthers = 4

// view matches the name of the view after the path in a route of Django.
var view = regexp.MustCompile(`^\s*,\s*(?:[\w.]+\.)?(\w+)`)

// function returns the text of a Python function, or the beginning of it; "" if there is none.
func (r *repository) function(name string) string {
	define := regexp.MustCompile(`(?m)^\s*(?:async )?def ` + name + `\(`)
	for _, file := range r.match("**/*.py") {
		if at := define.FindStringIndex(r.text(file)); at != nil {
			return r.text(file)[at[0]:min(len(r.text(file)), at[1]+handlerSize)]
		}
	}
	return ""
}

// parameter matches a part of a path that stands for a value.
var parameter = regexp.MustCompile(`:\w+(?:\([^)]*\))?|\{[^}]*\}|<[^>]*>|\(\?P<\w+>[^)]*\)|\[\w+\]`)

// mounted adds the path at which Express mounts a router, if the path of the route alone does not name
// a sale.
func (one *Route) mounted(file string, mounts []string) {
	stem, _, _ := strings.Cut(path.Base(file), ".")
	one.Path = path.Clean("/" + one.Path)
	if rank(one.Path) < len(words) || rank(stem) == len(words) {
		return
	}
	for _, at := range mounts {
		if rank(at) < len(words) {
			one.Path = path.Join(at, one.Path)
			return
		}
	}
	for _, expression := range words {
		if word := expression.FindString(stem); word != "" {
			one.Path = path.Join("/", strings.ToLower(word), one.Path)
			return
		}
	}
}

// rank returns the index in `words` of the first expression that matches the text, or len(words) if none does.
func rank(text string) int {
	for i, expression := range words {
		if expression.MatchString(text) {
			return i
		}
	}
	return len(words)
}

// rate scores a route; 0 means that it is not a sale.
func (one *Route) rate() {
	// Ignore the name of a parameter, such as orderId in /orders/:orderId/items.
	bare := parameter.ReplaceAllString(one.Path, "1")
	if i := rank(bare); i < len(words) {
		one.score = 10 * (len(words) - i)
		if one.Method != "POST" {
			one.score -= 15
		}
		if spoilt.MatchString(bare) {
			one.score -= 15
		}
		one.score = max(one.score-strings.Count(bare, "/"), 0)
	}
	one.Path = bare
}

// handlerSize is how many bytes after a route may belong to its handler.
const handlerSize = 900

// fields match code that reads a value from the body of a request. queries match code that reads one
// from the query.
var (
	fields = []*regexp.Regexp{
		regexp.MustCompile(`\breq(?:uest)?\.body\.(\w+)`),
		regexp.MustCompile(`\{([\w\s,]+)\}\s*=\s*(?:await\s+)?req(?:uest)?\.body`),
		regexp.MustCompile(`\brequest\.(?:json|form|data)(?:\[|\.get\(\s*)['"](\w+)['"]`),
		regexp.MustCompile(`\bpayload(?:\[|\.get\(\s*)['"](\w+)['"]`),
		regexp.MustCompile(`json\.loads\(\s*request\.body[^)]*\)+(?:\[|\.get\(\s*)['"](\w+)['"]`),
		regexp.MustCompile(`\$request->(?:input|integer|post)\(\s*['"](\w+)`),
		regexp.MustCompile(`['"](\w+)['"]\s*=>\s*\[?\s*['"]required`),
		regexp.MustCompile("`json:\"(\\w+)[^`]*binding:\"required"),
	}
	queries = []*regexp.Regexp{
		regexp.MustCompile(`\breq(?:uest)?\.query\.(\w+)`),
		regexp.MustCompile(`\bsearchParams\.get\(\s*['"](\w+)`),
		regexp.MustCompile(`\brequest\.args(?:\[|\.get\(\s*)['"](\w+)`),
		regexp.MustCompile(`\.(?:FormValue|Query|QueryParam)\(\s*"(\w+)"`),
		regexp.MustCompile(`parse_qs\((?:[^()]|\([^()]*\))*\)\s*(?:\[|\.get\(\s*)['"](\w+)`),
		regexp.MustCompile(`\bquery(?:\[|\.get\(\s*)['"](\w+)['"]`),
	}
)

// loaded matches Python code that decodes the body from JSON. The group is the variable that holds the result.
var loaded = regexp.MustCompile(`(\w+)\s*=\s*json\.loads\(\s*request\.body`)

var separators = regexp.MustCompile(`[\s,]+`)

// readFields finds the values that the handler of a route reads.
func (one *Route) readFields(handler string) {
	if m := loaded.FindStringSubmatch(handler); m != nil {
		handler = regexp.MustCompile(`\b`+m[1]+`(\[|\.get\()`).ReplaceAllString(handler, "payload$1")
	}
	for _, list := range []struct {
		expressions []*regexp.Regexp
		to          *[]string
	}{{fields, &one.Fields}, {queries, &one.Query}} {
		for _, expression := range list.expressions {
			for _, names := range groups(expression, handler) {
				for _, name := range separators.Split(strings.TrimSpace(names), -1) {
					if name != "" && !slices.Contains(*list.to, name) {
						*list.to = append(*list.to, name)
					}
				}
			}
		}
	}
}

var (
	isNumber = regexp.MustCompile(`(?i)id$|amount|quantity|qty|count|item|product|stock|seats?$|^n$`)
	isEmail  = regexp.MustCompile(`(?i)e?mail`)
)

func sample(name string) any {
	switch {
	case isNumber.MatchString(name):
		return 1
	case isEmail.MatchString(name):
		return "buyer@example.com"
	}
	return "buyer"
}
