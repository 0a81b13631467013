package composecheck

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"go.yaml.in/yaml/v3"
)

// These packages of tools/install-servers.sh are for tests, and no server of the shop needs them.
var testPackages = []string{"chromium", "curl", "haproxy", "nodejs", "npm"}

// TestDockerfile: BuildKit's parser accepts the Dockerfile without a warning, and each stage has what it promises.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	for _, fault := range dockerfileFaults(read(t, "Dockerfile"), read(t, "tools/install-servers.sh"), read(t, ".goreleaser.yaml")) {
		t.Error(fault)
	}
}

// TestDockerfileFaultsAreSeen breaks one place in the Dockerfile and expects the fault that results.
func TestDockerfileFaultsAreSeen(t *testing.T) {
	t.Parallel()
	sound := string(read(t, "Dockerfile"))
	for _, tt := range []struct{ name, old, new, want string }{
		{"instruction", "EXPOSE 8080", "EXPOSED 8080", "unknown instruction: EXPOSED"},
		{"lint", "AS build", "as build", "'as' and 'FROM' keywords' casing do not match"},
		{"no server", " pgbouncer", "", "with-servers lacks pgbouncer"},
		{"no such stage", "AS with-servers", "AS servers", "there is no stage with-servers"},
		{"other default", "FROM alpine:3.22.2 AS shop", "FROM alpine:3.22.2 AS shop\nFROM shop AS other", "the last stage is other"},
		{"root", "USER 65534:65534", "USER 0:0", "runs as 0:0"},
		{"other tags", "nomsgpack,", "", "-tags grpcnotrace,nethttpomithttp2,nopgxregisterdefaulttypes, and the release nomsgpack,"},
		{"other linker flags", "-s -w ", "-w ", "the linker gets -w"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			broken := strings.Replace(sound, tt.old, tt.new, 1)
			if broken == sound {
				t.Fatalf("the Dockerfile has no %q to break", tt.old)
			}
			got := dockerfileFaults([]byte(broken), read(t, "tools/install-servers.sh"), read(t, ".goreleaser.yaml"))
			if !slices.ContainsFunc(got, func(fault string) bool { return strings.Contains(fault, tt.want) }) {
				t.Errorf("got %q, want one with %q", got, tt.want)
			}
		})
	}
}

// dockerfileFaults lists the errors and warnings of BuildKit, and what the stages lack.
func dockerfileFaults(dockerfile, installer, release []byte) (found []string) {
	wrong := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	parsed, err := parser.Parse(bytes.NewReader(dockerfile))
	if err != nil {
		return []string{err.Error()}
	}
	stages, _, err := instructions.Parse(parsed.AST, linter.New(&linter.Config{
		Warn: func(rule, _, _, message string, _ []parser.Range) { wrong("%s: %s", rule, message) },
	}))
	if err != nil {
		return []string{err.Error()}
	}
	texts := map[string]string{}
	for _, stage := range stages {
		user := "root"
		for _, c := range stage.Commands {
			texts[stage.Name] += fmt.Sprint(c) + "\n"
			if u, ok := c.(*instructions.UserCommand); ok {
				user = u.User
			}
		}
		if stage.Name != "build" && user != "65534:65534" {
			wrong("stage %s runs as %s", stage.Name, user)
		}
	}
	if last := stages[len(stages)-1].Name; last != "shop" {
		wrong("the last stage is %s, which docker build makes", last)
	}

	servers, ok := texts["with-servers"]
	if !ok {
		wrong("there is no stage with-servers")
	}
	for _, names := range regexp.MustCompile(`packages="\$packages ([a-z0-9 -]+)"`).FindAllStringSubmatch(string(installer), -1) {
		for _, name := range strings.Fields(names[1]) {
			if !slices.Contains(testPackages, name) && !slices.Contains(strings.Fields(servers), name) {
				wrong("with-servers lacks %s, which tools/install-servers.sh installs", name)
			}
		}
	}

	var config struct {
		Builds []struct {
			Tags    []string
			Ldflags string
		}
	}
	if err := yaml.Unmarshal(release, &config); err != nil {
		return append(found, err.Error())
	}
	build := config.Builds[0]
	if tags := firstGroup(`-tags (\S+)`, texts["build"]); tags != strings.Join(build.Tags, ",") {
		wrong("the program is built with -tags %s, and the release %s", tags, strings.Join(build.Tags, ","))
	}
	if flags := firstGroup(`-ldflags='([^']*)'`, texts["build"]); !strings.HasPrefix(build.Ldflags, flags+" -X") {
		wrong("the linker gets %s, and for the release %s", flags, build.Ldflags)
	}
	return found
}

// firstGroup returns what the first group of a pattern matches in a text.
func firstGroup(pattern, text string) string {
	if match := regexp.MustCompile(pattern).FindStringSubmatch(text); match != nil {
		return match[1]
	}
	return ""
}
