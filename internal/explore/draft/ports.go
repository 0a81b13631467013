package draft

import (
	"regexp"
	"strings"
)

// ports match the program's port in commands and in source files.
var ports = []*regexp.Regexp{
	regexp.MustCompile(`(?:--port[= ]|-p |--bind[= ][\w.]*:|-b [\d.]+:|runserver (?:[\w.]+:)?|-S [\w.]+:)(\d{4,5})\b`),
	regexp.MustCompile(`(?i)\bPORT['"]?\]?\)?\s*(?:\|\||\?\?|,|:-?|\?:)\s*['"]?(\d{4,5})\b`),
	regexp.MustCompile(`\.listen\(\s*(?:\{\s*port:\s*)?(\d{4,5})\b`),
	regexp.MustCompile(`(?:Run|ListenAndServe|Listen|Start)\(\s*"[\w.]*:(\d{4,5})"`),
	regexp.MustCompile(`Server\(\s*\(\s*["']?[\w.]*["']?\s*,\s*(\d{4,5})\)`),
	regexp.MustCompile(`\bserver\.port\s*[=:]\s*(\d{4,5})\b|\brun\([^)]*\bport\s*=\s*(\d{4,5})\b|\bAddr:\s*"[\w.]*:(\d{4,5})"`),
	regexp.MustCompile(`(?i)\bport\s*:?=\s*(\d{4,5})\b`),
}

// serverPorts match the ports of databases and other servers, which source files also contain.
var serverPorts = regexp.MustCompile(`^(?:3306|5432|6379|27017|5672|9092|1025)$`)

func readPorts(r *repository, d *Draft) {
	for _, expression := range ports {
		if port := lastGroup(expression.FindStringSubmatch(d.Run.Text)); port != "" {
			d.Port = Value{Text: port, Because: "the command has it"}
			return
		}
	}
	if d.Port.Text != "" {
		return
	}
	files := r.sourceFiles()
	for _, expression := range ports {
		for _, file := range files {
			for _, m := range expression.FindAllStringSubmatch(r.text(file), -1) {
				if port := lastGroup(m); !serverPorts.MatchString(port) {
					d.Port.guess(port, "%s has %s", file, strings.Join(strings.Fields(m[0]), " "))
				}
			}
		}
	}
}

// lastGroup returns the first group of a match that is not empty.
func lastGroup(groups []string) string {
	for _, group := range groups[min(1, len(groups)):] {
		if group != "" {
			return group
		}
	}
	return ""
}
