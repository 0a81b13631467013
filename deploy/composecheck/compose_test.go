// Package composecheck tests docker-compose.yml without a Docker engine.
//
// It uses the loader of docker compose, which validates against the compose-spec JSON schema. It
// cannot show that the images exist and that the containers start.
package composecheck

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

const root = "../.."

// pinned matches a tag with a patch version: two dots, and never latest. The versions of PostgreSQL
// and Debian have one dot.
var pinned = regexp.MustCompile(`(:v?\d+\.\d+\.\d+|^(postgres|debian):\d+\.\d+)(-[a-z0-9.]+)?$`)

func TestComposeFile(t *testing.T) {
	t.Parallel()
	for _, fault := range faults(read(t, "docker-compose.yml")) {
		t.Error(fault)
	}
}

func TestDockerfileIsPinned(t *testing.T) {
	t.Parallel()
	for _, fault := range unpinnedStages(string(read(t, "Dockerfile"))) {
		t.Error(fault)
	}
}

// TestFaultsAreSeen breaks one place in the file and expects exactly the fault that results.
func TestFaultsAreSeen(t *testing.T) {
	t.Parallel()
	sound := string(read(t, "docker-compose.yml"))
	for _, tt := range []struct{ name, old, new, want string }{
		{"schema", "    build: .", "    built: .", ".built false schema"}, // reported for one of the shops, since both have it from one anchor
		{"no image", "    image: prom/prometheus:v3.5.0\n", "", `service "prometheus" has neither an image nor a build context`},
		{"latest", "prom/prometheus:v3.5.0", "prom/prometheus:latest", "prometheus: image prom/prometheus:latest is not pinned"},
		{"minor version only", "mysql:8.4.10", "mysql:8.4", "mysql: image mysql:8.4 is not pinned"},
		{"no health check", "[CMD, wget, -q, -O, /dev/null, http://127.0.0.1:9090/-/ready]", "[NONE]", "prometheus: no health check"},
		{"started, not healthy", "condition: service_healthy", "condition: service_started", "shop: waits for mysql to be service_started"},
		{"unknown dependency", "  redlock5: *healthy", "  redlock6: *healthy", `depends on undefined service "redlock6"`},
		{"not waited for", "  redlock5: *healthy\n", "", "shop: uses redlock5 and does not wait for it"},
		{"database not waited for", "      postgres: *healthy\n", "", "shop-postgres: uses postgres and does not wait for it"},
		{"major version only", "postgres:15.18", "postgres:15", "postgres: image postgres:15 is not pinned"},
		{"same port", "127.0.0.1:8081:8080", "127.0.0.1:8080:8080", "shop-postgres: 8081 is not published"},
		{"same locks", "redis://redlock3:6379/1", "redis://redlock3:6379", "shop-postgres: redis://redlock3:6379 is shop's, too"},
		{"always started", "    profiles: [postgres]\n    image", "    image", "postgres is started without --profile postgres"},
		{"unknown server", "redis://redis:6379", "redis://cache:6379", `shop: SHOP_REDIS_URL names "cache", which is no service`},
		{"other port", `"127.0.0.1:8080:8080"`, `"127.0.0.1:8081:8080"`, "shop: 8080 is not published"},
		{"open to the network", `"127.0.0.1:9090:9090"`, `"9090:9090"`, "prometheus: port 9090 is published on every address"},
		{"a node less", "  redlock1: *redis\n", "", `depends on undefined service "redlock1"`},
		{"a node more", "  redlock1: *redis\n", "  redlock1: *redis\n  redlock6: *redis\n", "7 Redis nodes, want 6"},
		{"no token", "${SHOP_ADMIN_TOKEN:-workshop}", "${SHOP_ADMIN_TOKEN}", "shop: without SHOP_ADMIN_TOKEN set nobody can restock"},
		{"missing file", "./deploy/prometheus.yml", "./deploy/prometheus.yaml", "prometheus: ../../deploy/prometheus.yaml is mounted and is not there"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			broken := strings.Replace(sound, tt.old, tt.new, 1)
			if broken == sound {
				t.Fatalf("docker-compose.yml has no %q to break", tt.old)
			}
			got := faults([]byte(broken))
			if !slices.ContainsFunc(got, func(fault string) bool { return strings.Contains(fault, tt.want) }) {
				t.Errorf("got %q, want one with %q", got, tt.want)
			}
		})
	}
	if got := unpinnedStages("FROM golang:1.26 AS build\nFROM build\nFROM alpine\n"); len(got) != 2 {
		t.Errorf("unpinned stages: got %q, want golang:1.26 and alpine", got)
	}
}

// profile starts the shop on PostgreSQL, too.
const profile = "postgres"

// load reads a compose file with an empty environment, as for a user who has set nothing.
func load(file []byte, profiles ...string) (*types.Project, error) {
	return loader.LoadWithContext(context.Background(), types.ConfigDetails{
		WorkingDir:  root,
		ConfigFiles: []types.ConfigFile{{Filename: "docker-compose.yml", Content: file}},
		Environment: types.Mapping{},
	}, loader.WithProfiles(profiles))
}

// faults lists the errors in a compose file, with and without the profile.
func faults(file []byte) (found []string) {
	wrong := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	plain, err := load(file)
	if err != nil {
		return []string{err.Error()}
	}
	project, err := load(file, profile)
	if err != nil {
		return []string{err.Error()}
	}
	for _, name := range []string{"postgres", "shop-postgres"} {
		if _, started := plain.Services[name]; started {
			wrong("%s is started without --profile %s", name, profile)
		}
	}
	redis := 0
	for _, name := range slices.Sorted(maps.Keys(project.Services)) {
		service := project.Services[name]
		if service.Build == nil && !pinned.MatchString(service.Image) {
			wrong("%s: image %s is not pinned to a patch version", name, service.Image)
		}
		if strings.HasPrefix(service.Image, "redis:") {
			redis++
		}
		check := service.HealthCheck
		if check == nil || check.Disable || len(check.Test) < 2 {
			wrong("%s: no health check", name)
		}
		for _, other := range slices.Sorted(maps.Keys(service.DependsOn)) {
			if condition := service.DependsOn[other].Condition; condition != types.ServiceConditionHealthy {
				wrong("%s: waits for %s to be %s", name, other, condition)
			}
		}
		for _, port := range service.Ports {
			if port.HostIP != "127.0.0.1" {
				wrong("%s: port %s is published on every address", name, port.Published)
			}
		}
		for _, volume := range service.Volumes {
			if volume.Type != types.VolumeTypeBind {
				continue
			}
			if _, err := os.Stat(volume.Source); err != nil {
				wrong("%s: %s is mounted and is not there", name, volume.Source)
			}
		}
	}
	if redis != 6 {
		wrong("%d Redis nodes, want 6: one, and five for Redlock", redis)
	}
	used := map[string]string{} // by address
	return slices.Concat(found, shopFaults(project, "shop", "8080", used), shopFaults(project, "shop-postgres", "8081", used))
}

// shopFaults checks the server addresses in a shop's settings. used contains the addresses of the
// shops before it, since two shops must not share locks.
func shopFaults(project *types.Project, name, port string, used map[string]string) (found []string) {
	wrong := func(format string, args ...any) { found = append(found, name+": "+fmt.Sprintf(format, args...)) }
	shop := project.Services[name]
	if !slices.ContainsFunc(shop.Ports, func(p types.ServicePortConfig) bool { return p.Published == port && p.Target == 8080 }) {
		wrong("%s is not published", port)
	}
	if token := shop.Environment["SHOP_ADMIN_TOKEN"]; token == nil || *token == "" {
		wrong("without SHOP_ADMIN_TOKEN set nobody can restock")
	}
	for variable, nodes := range map[string]int{"SHOP_DB_URL": 1, "SHOP_REDIS_URL": 1, "SHOP_REDLOCK_URLS": 5} {
		value := shop.Environment[variable]
		if value == nil {
			wrong("%s is not set", variable)
			continue
		}
		hosts := map[string]bool{}
		for address := range strings.SplitSeq(*value, ",") {
			u, err := url.Parse(address)
			if err != nil {
				wrong("%s: %v", variable, err)
				continue
			}
			if other := used[address]; other != "" {
				wrong("%s is %s's, too", address, other)
			}
			used[address] = name
			host := u.Hostname()
			hosts[host] = true
			if _, ok := project.Services[host]; !ok {
				wrong("%s names %q, which is no service", variable, host)
			} else if _, ok := shop.DependsOn[host]; !ok {
				wrong("uses %s and does not wait for it", host)
			}
		}
		if len(hosts) != nodes {
			wrong("%s names %d servers, want %d", variable, len(hosts), nodes)
		}
	}
	return found
}

// unpinnedStages finds each FROM that names neither an earlier stage nor a patch version.
func unpinnedStages(dockerfile string) (found []string) {
	stages := map[string]bool{}
	for line := range strings.Lines(dockerfile) {
		words := strings.Fields(line)
		if len(words) < 2 || !strings.EqualFold(words[0], "FROM") {
			continue
		}
		if image := words[1]; !stages[image] && !pinned.MatchString(image) {
			found = append(found, "Dockerfile: image "+image+" is not pinned to a patch version")
		}
		if len(words) == 4 {
			stages[words[3]] = true
		}
	}
	return found
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}
