package draft

import (
	"os"
	"regexp"
	"strings"
)

// dotenvExamples are files with example values, which belong to the repository.
var dotenvExamples = []string{".env.example", ".env.sample", ".env.dist", ".env.template", "env.example", "example.env", "app.env.example", ".env.development"}

// dotenvOwn are files that the program reads itself. Their values may be secrets, so the draft uses
// only the names of variables and the addresses of servers.
var dotenvOwn = []string{".env", "app.env"}

// assignment matches a line NAME=value. The draft skips any other line: the file may be for another
// parser, and the other lines are still useful.
var assignment = regexp.MustCompile(`^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*$`)

func readDotenv(r *repository, d *Draft) {
	if file := r.first(dotenvExamples...); file != "" {
		for _, v := range parseDotenv(r.text(file)) {
			v.file, v.Comment = file, "as in "+file
			d.variables = append(d.variables, v)
		}
	}
	for _, file := range dotenvOwn {
		for _, v := range parseDotenv(r.text(file)) {
			switch {
			case ofURL(v.Value) != nil:
				v.file = file
				d.variables = append(d.variables, v)
			case isPort(v.Name):
				d.Port.guess(portOf(v.Value), "%s has %s", file, v.Name)
			default:
				d.asked = append(d.asked, v.Name)
			}
		}
	}
	for _, v := range d.variables {
		if k := ofURL(v.Value); k != nil {
			d.uses(k, fair, "%s has %s", v.file, v.Name)
		}
		if chooses.MatchString(v.Name) {
			d.uses(ofWord(v.Value), strong, "%s has %s=%s", v.file, v.Name, v.Value)
		}
		if isPort(v.Name) {
			d.Port.guess(portOf(v.Value), "%s has %s", v.file, v.Name)
		}
	}
}

func parseDotenv(text string) (all []Variable) {
	known := map[string]string{}
	for line := range strings.Lines(text) {
		m := assignment.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		name, value := m[1], m[2]
		switch quote := value[:min(1, len(value))]; {
		case quote == `"` || quote == "'":
			value, _, _ = strings.Cut(value[1:], quote)
		default:
			value, _, _ = strings.Cut(value, " #")
			value = strings.TrimSpace(value)
		}
		value = os.Expand(value, func(name string) string { return known[name] })
		known[name] = value
		all = append(all, Variable{Name: name, Value: value})
	}
	return all
}
