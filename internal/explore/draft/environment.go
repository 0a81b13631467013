package draft

import (
	"regexp"
	"slices"
	"strings"
)

// readName matches the name of an environment variable where a program reads it, in any language.
var readName = regexp.MustCompile(`(?:process\.env\.|process\.env\[\s*['"]|environ(?:\.get)?[\[(]\s*['"]|[gG]etenv\(\s*['"]|\benv(?:\.\w+)?\(\s*['"]|\bconfig\(\s*['"]|\bENV(?:\.fetch\(|\[)\s*['"]|mapstructure:"|\$\{)([A-Z][A-Z0-9_]{2,})`)

// taken matches the list of names in code for Node such as const { A, B } = process.env. anyName
// matches one of these names.
var (
	taken   = regexp.MustCompile(`\{([^{}]+)\}\s*=\s*process\.env\b`)
	anyName = regexp.MustCompile(`\b[A-Z][A-Z0-9_]{2,}\b`)
)

// nameHints are texts. Each match of readName contains one of them.
var nameHints = []string{"env", "ENV", "config(", "mapstructure", "${"}

func readEnvironment(r *repository, d *Draft) {
	for _, file := range append(r.sourceFiles(), "config/database.yml") {
		text := r.text(file)
		if !slices.ContainsFunc(nameHints, func(hint string) bool { return strings.Contains(text, hint) }) {
			continue // most files read no variable, and this check is faster than the expression
		}
		d.asked = append(d.asked, groups(readName, text)...)
		for _, names := range groups(taken, text) {
			d.asked = append(d.asked, anyName.FindAllString(names, -1)...)
		}
	}
}

var (
	// chooses matches a variable that names the kind of database.
	chooses = regexp.MustCompile(`(?i)^(?:DB|DATABASE|SQL|TYPEORM)_?(?:CONNECTION|DIALECT|CLIENT|ENGINE|DRIVER|TYPE|KIND|BACKEND)$`)
	// ofDatabase matches a variable of a database of any kind.
	ofDatabase = regexp.MustCompile(`(?i)^(?:\w+_)?(?:DB|DATABASE|SQL|DATASOURCE|TYPEORM|RDS)(?:_|$)`)
	// ofApp matches the variables of the program's own port.
	ofApp = regexp.MustCompile(`^(?:(?:APP|SERVER|HTTP|API|WEB|NODE|LISTEN)_)?PORT$|^(?:(?:APP|SERVER|HTTP|API)_)+(?:SERVER_)?ADDR(?:ESS)?$`)
	digit = regexp.MustCompile(`(\d{2,5})$`)
)

// elsewhere matches variables for web pages, and for services that a sale does not need.
var elsewhere = regexp.MustCompile(`^(?:VITE|NEXT_PUBLIC|NUXT_PUBLIC|REACT_APP|MAIL|AWS|PUSHER|MEMCACHED|LOG|GRAFANA|PLAYWRIGHT)_`)

// secret matches variables without which a program does not start. anySecret is a value for them, long
// enough for most programs.
var secret = regexp.MustCompile(`_SECRET$|^SECRET_KEY(?:_BASE)?$`)

const anySecret = "only-for-the-test-0123456789abcdef" // #nosec G101 -- a value for drafts; no server has it

var variableName = regexp.MustCompile(`^[A-Za-z_]\w*$`)

func isPort(name string) bool { return ofApp.MatchString(name) }

// portOf returns the port at the end of a value such as 8080 or 0.0.0.0:8080.
func portOf(value string) string { return digit.FindString(value) }

// roles are the endings of variables' names, with the value for a private server.
var roles = []struct {
	ending *regexp.Regexp
	value  func(*Draft, *kind) string
}{
	{regexp.MustCompile(`(?i)(?:HOST|HOSTNAME|SERVER|ADDR|HOST_WRITE|HOST_READ)$`), func(_ *Draft, k *kind) string { return k.host }},
	{regexp.MustCompile(`(?i)PORT$`), func(_ *Draft, k *kind) string { return k.port }},
	{regexp.MustCompile(`(?i)(?:USER|USERNAME|LOGIN)$`), func(_ *Draft, k *kind) string { return k.user }},
	{regexp.MustCompile(`(?i)(?:PASS|PASSWORD|PWD)$`), func(*Draft, *kind) string { return "" }},
	{regexp.MustCompile(`(?i)(?:URL|URI|DSN|SOURCE)$`), func(d *Draft, k *kind) string { return d.url(k) }},
	{regexp.MustCompile(`(?i)(?:NAME|DATABASE|_DB|DBNAME)$`), func(_ *Draft, k *kind) string { return k.database }},
}

// url returns the address of a private server in the program's notation.
func (d *Draft) url(k *kind) string {
	if own := d.urls[k]; own != "" {
		return own
	}
	return k.private(k.schemes[0] + "://host/database")
}

// ofServer returns the server that a variable belongs to; nil if the program does not use that server.
func (d *Draft) ofServer(name string) *kind {
	k := ofWord(name)
	switch {
	case k == redis && d.Redis != nil:
		return redis
	case d.Database == nil:
		return nil
	case k == d.Database.kind, k == nil && ofDatabase.MatchString(name):
		return d.Database.kind
	}
	return nil
}

// forPrivate returns the value of a variable for a private server. ok is false if the variable does not
// address a server.
func (d *Draft) forPrivate(name, value string) (_ string, ok bool) {
	if k := ofURL(value); k != nil {
		switch {
		case d.Database != nil && k == d.Database.kind, k == redis && d.Redis != nil:
			return k.private(value), true
		}
		return "", false
	}
	k := d.ofServer(name)
	if k == nil || chooses.MatchString(name) {
		return "", false
	}
	for _, role := range roles {
		if role.ending.MatchString(name) {
			return role.value(d, k), true
		}
	}
	return "", false
}

// chooseEnv sets the variables in oversell.yaml: first the addresses of the private servers, then the
// other variables of the repository's example.
func chooseEnv(_ *repository, d *Draft) {
	var own, others []Variable
	known := func(name string) bool {
		return slices.ContainsFunc(append(slices.Clone(own), others...), func(v Variable) bool { return v.Name == name })
	}
	for _, v := range d.variables {
		value, private := d.forPrivate(v.Name, v.Value)
		switch {
		case known(v.Name) || !variableName.MatchString(v.Name):
		case private:
			own = append(own, Variable{Name: v.Name, Value: value})
		case v.Value != "" && v.Value != "null" && ofURL(v.Value) == nil && !strings.ContainsAny(v.Value, "${%") && !elsewhere.MatchString(v.Name):
			others = append(others, v)
		}
	}
	for _, name := range d.asked {
		if value, private := d.forPrivate(name, ""); private && !known(name) {
			own = append(own, Variable{Name: name, Value: value})
		}
	}
	for _, name := range d.asked {
		if secret.MatchString(name) && !known(name) {
			others = append(others, Variable{Name: name, Value: anySecret})
		}
	}
	if d.Database != nil && d.profiles[d.Database.kind] != "" && !known("SPRING_PROFILES_ACTIVE") {
		own = append(own, Variable{Name: "SPRING_PROFILES_ACTIVE", Value: d.profiles[d.Database.kind]})
	}
	if strings.Contains(d.Run.Text, "$PORT") && !known("PORT") {
		own = append(own, Variable{Name: "PORT", Value: d.port()})
	}
	d.Env = append(own, others...)
}
