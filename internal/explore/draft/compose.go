package draft

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

type service struct {
	Image       string `yaml:"image"`
	Build       any    `yaml:"build"`
	Command     any    `yaml:"command"`
	Environment any    `yaml:"environment"`
	Ports       []any  `yaml:"ports"`
	Expose      []any  `yaml:"expose"`
}

// containerPort matches the port inside the container, at the end of a port mapping.
var containerPort = regexp.MustCompile(`(\d+)(?:/tcp)?$`)

// readCompose reads the compose files. They name the servers next to the program, and the program's
// variables.
func readCompose(r *repository, d *Draft) {
	for _, file := range r.match("compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml", "docker-compose.*.yml", "docker-compose.*.yaml", "compose.*.yaml", "compose.*.yml") {
		var c struct {
			Services yaml.MapSlice `yaml:"services"`
		}
		if yaml.Unmarshal([]byte(r.text(file)), &c) != nil {
			continue // a template, or YAML that this library does not support
		}
		for _, item := range c.Services {
			var s service
			text, err := yaml.Marshal(item.Value)
			if err != nil || yaml.Unmarshal(text, &s) != nil {
				continue
			}
			server := slices.IndexFunc(kinds, func(k *kind) bool { return k.image.MatchString(s.Image) })
			switch {
			case server >= 0:
				d.uses(kinds[server], fair, "%s has the image %s", file, s.Image)
			case s.Build != nil:
				d.serves(file, fmt.Sprint(item.Key), s)
			}
		}
	}
}

// serves reads the service of the program itself, which is built from the repository.
func (d *Draft) serves(file, name string, s service) {
	switch environment := s.Environment.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(environment)) {
			d.variables = append(d.variables, Variable{Name: key, Value: composeText(environment[key]), Comment: "as in " + file, file: file})
		}
	case []any:
		for _, one := range environment {
			if key, value, given := strings.Cut(fmt.Sprint(one), "="); given {
				d.variables = append(d.variables, Variable{Name: key, Value: composeText(value), Comment: "as in " + file, file: file})
			}
		}
	}
	if command, ok := s.Command.(string); ok {
		d.Run.guess(strings.TrimSpace(command), "%s has command of %s", file, name)
	}
	for _, one := range append(s.Expose, s.Ports...) {
		if m := containerPort.FindStringSubmatch(fmt.Sprint(one)); m != nil {
			d.Port.guess(m[1], "%s has this port of %s", file, name)
		}
	}
}

// reference matches a reference to a variable: ${NAME:-default}, ${NAME?message} or ${NAME}.
var reference = regexp.MustCompile(`\$\{\w+(?::?-([^}]*)|:?\?[^}]*)?\}`)

func composeText(value any) string {
	if value == nil {
		return ""
	}
	return reference.ReplaceAllString(fmt.Sprint(value), "$1")
}
