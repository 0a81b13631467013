package composecheck

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"go.yaml.in/yaml/v3"
)

const scale = root + "/deploy/scale"

// TestScale checks deploy/scale/compose.yml and the files that its services read.
func TestScale(t *testing.T) {
	t.Parallel()
	for _, fault := range scaleFaults(readScale(t, "compose.yml"), readScale(t, "haproxy.cfg"), readScale(t, "prometheus.yml"), readScale(t, "galera.cnf")) {
		t.Error(fault)
	}
}

// TestScaleFaultsAreSeen breaks one place in one file and expects the fault that results.
func TestScaleFaultsAreSeen(t *testing.T) {
	t.Parallel()
	sound := map[string]string{}
	for _, name := range []string{"compose.yml", "haproxy.cfg", "prometheus.yml", "galera.cnf"} {
		sound[name] = string(readScale(t, name))
	}
	for _, tt := range []struct{ name, file, old, new, want string }{
		{"schema", "compose.yml", "    image: haproxy", "    imagine: haproxy", "proxy"},
		{"latest", "compose.yml", "haproxy:3.0.12-alpine", "haproxy:latest", "proxy: image haproxy:latest is not pinned"},
		{"a shop less behind the proxy", "haproxy.cfg", "    server shop3 shop3:8080\n", "", "the proxy leads to shop1, shop2, and the shops are shop1, shop2, shop3"},
		{"an unknown shop", "haproxy.cfg", "shop3:8080", "shop4:8080", "the proxy leads to shop1, shop2, shop4"},
		{"a sale sent twice", "haproxy.cfg", "retry-on conn-failure", "retry-on all-retryable-errors", "sends requests again"},
		{"unwatched shop", "prometheus.yml", ", shop3:8080", "", "Prometheus watches"},
		{"unknown database node", "compose.yml", "galera3:3306/shop", "galera4:3306/shop", `shop3: SHOP_DB_URL names "galera4", which is no service`},
		{"two shops at one node", "compose.yml", `SHOP_PROCESS: "1"`, `SHOP_PROCESS: "0"`, "shop2: and shop1 are process 0 and begin at one node"},
		{"no number", "compose.yml", `SHOP_PROCESS: "1"`, `SHOP_PROCESSES: "1"`, `shop2: SHOP_PROCESS is "", and not 0 to 2`},
		{"another order of nodes", "compose.yml", `SHOP_PROCESS: "1"`, "SHOP_PROCESS: \"1\"\n      SHOP_DB_URL: mysql://shop:shop@galera2:3306,galera3:3306,galera1:3306/shop", "migrates at galera2 and shop1 at galera1"},
		{"unknown Redis node", "compose.yml", "redis3:6379\n", "redis7:6379\n", `names "redis7", which is no service`},
		{"not waited for", "compose.yml", "    galera3: *healthy\n    redis-cluster", "    redis-cluster", "uses galera3 and does not wait for it"},
		{"before the cluster", "compose.yml", "service_completed_successfully", "service_started", "waits for redis-cluster to be service_started"},
		{"no cluster", "compose.yml", `--cluster-enabled, "yes", `, "", "redis1: is no node of a cluster"},
		{"five nodes", "compose.yml", "for n in 1 2 3 4 5 6", "for n in 1 2 3 4 5", "the cluster is made of 5 nodes, and there are 6"},
		{"a cluster of its own", "compose.yml", "$$([ -e /var/lib/mysql/grastate.dat ] || echo --wsrep-new-cluster)", "--wsrep-new-cluster", "galera1: makes a new cluster at every start"},
		{"unknown Galera node", "galera.cnf", "galera3", "galera5", "galera.cnf has galera1,galera2,galera5"},
		{"shared data", "compose.yml", `"galera2:/var/lib/mysql"`, `"galera1:/var/lib/mysql"`, "is mounted by galera1, too"},
		{"open to the network", "compose.yml", `"127.0.0.1:3000:3000"`, `"3000:3000"`, "grafana: port 3000 is published on every address"},
		{"missing file", "compose.yml", "./galera-init.sql", "./galera-start.sql", "is mounted and is not there"},
		{"no token", "compose.yml", "${SHOP_ADMIN_TOKEN:-workshop}", "${SHOP_ADMIN_TOKEN}", "without SHOP_ADMIN_TOKEN set nobody can restock"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			broken := maps.Clone(sound)
			if broken[tt.file] = strings.Replace(sound[tt.file], tt.old, tt.new, 1); broken[tt.file] == sound[tt.file] {
				t.Fatalf("%s has no %q to break", tt.file, tt.old)
			}
			got := scaleFaults([]byte(broken["compose.yml"]), []byte(broken["haproxy.cfg"]), []byte(broken["prometheus.yml"]), []byte(broken["galera.cnf"]))
			if !slices.ContainsFunc(got, func(fault string) bool { return strings.Contains(fault, tt.want) }) {
				t.Errorf("got %q, want one with %q", got, tt.want)
			}
		})
	}
}

// TestProxyConfig lets HAProxy check the file, if it is installed. The shops' addresses do not
// resolve here; only syntax errors count.
func TestProxyConfig(t *testing.T) {
	t.Parallel()
	haproxy, err := exec.LookPath("haproxy")
	if err != nil { // exists on Debian only
		haproxy, err = exec.LookPath("/usr/sbin/haproxy")
	}
	switch {
	case err != nil && os.Getenv("CI") != "":
		t.Fatal("haproxy is not installed: apt-get install haproxy")
	case err != nil:
		t.Skip("haproxy is not installed: apt-get install haproxy")
	}
	if out, err := exec.CommandContext(t.Context(), haproxy, "-c", "-f", filepath.Join(scale, "haproxy.cfg")).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// scaleFaults lists the errors in the files, taken together.
func scaleFaults(compose, proxy, prometheus, galera []byte) (found []string) {
	wrong := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	project, err := loader.LoadWithContext(context.Background(), types.ConfigDetails{
		WorkingDir: scale, ConfigFiles: []types.ConfigFile{{Filename: "compose.yml", Content: compose}}, Environment: types.Mapping{},
	})
	if err != nil {
		return []string{err.Error()}
	}
	of := func(prefix string) (names []string) {
		for _, name := range slices.Sorted(maps.Keys(project.Services)) {
			if rest, ok := strings.CutPrefix(name, prefix); ok && len(rest) == 1 {
				names = append(names, name)
			}
		}
		return names
	}
	found = append(found, servicesFaults(project)...)
	shops, databases, locks := of("shop"), of("galera"), of("redis")
	if behind := hostsOf(proxyServer, proxy); !slices.Equal(behind, shops) {
		wrong("the proxy leads to %s, and the shops are %s", strings.Join(behind, ", "), strings.Join(shops, ", "))
	}
	if retry := retryOn.FindSubmatch(proxy); retry == nil || string(retry[1]) != "conn-failure" {
		wrong("the proxy sends requests again that a shop may have done")
	}
	found = append(found, watchedFaults(prometheus, shops)...)
	processes, first := map[string]string{}, migratesAt{}
	for _, name := range shops {
		found = append(found, scaleShopFaults(project, name, &first)...)
		process := project.Services[name].Environment["SHOP_PROCESS"]
		switch n, err := strconv.Atoi(valueOf(process)); {
		case err != nil || n < 0 || n >= len(databases):
			wrong("%s: SHOP_PROCESS is %q, and not 0 to %d", name, valueOf(process), len(databases)-1)
		case processes[*process] != "":
			wrong("%s: and %s are process %s and begin at one node", name, processes[*process], *process)
		default:
			processes[*process] = name
		}
	}
	for _, name := range locks {
		if !strings.Contains(strings.Join(project.Services[name].Command, " "), "--cluster-enabled yes") {
			wrong("%s: is no node of a cluster", name)
		}
	}
	if nodes := forNodes.FindStringSubmatch(strings.Join(project.Services["redis-cluster"].Command, " ")); nodes == nil || len(strings.Fields(nodes[1])) != len(locks) {
		wrong("the cluster is made of %d nodes, and there are %d", len(strings.Fields(nodes[1])), len(locks))
	}
	if first := strings.Join(project.Services[databases[0]].Entrypoint, " "); !strings.Contains(first, "grastate.dat ] || echo --wsrep-new-cluster") {
		wrong("%s: makes a new cluster at every start, or never", databases[0])
	}
	if got := galeraNodes.FindSubmatch(galera); got == nil || string(got[1]) != strings.Join(databases, ",") {
		wrong("galera.cnf has %s, and the nodes are %s", got[1], strings.Join(databases, ","))
	}
	return found
}

var (
	proxyServer = regexp.MustCompile(`(?m)^\s*server \w+ (\w+):8080`)
	retryOn     = regexp.MustCompile(`(?m)^\s*retry-on (.*)$`)
	forNodes    = regexp.MustCompile(`for n in ([\d ]+)`)
	galeraNodes = regexp.MustCompile(`gcomm://(\S+)`)
)

func hostsOf(pattern *regexp.Regexp, text []byte) (hosts []string) {
	for _, m := range pattern.FindAllSubmatch(text, -1) {
		hosts = append(hosts, string(m[1]))
	}
	return hosts
}

// servicesFaults lists the errors that any service may have.
func servicesFaults(project *types.Project) (found []string) {
	wrong := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	mounted := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(project.Services)) {
		service := project.Services[name]
		if service.Build == nil && !pinned.MatchString(service.Image) {
			wrong("%s: image %s is not pinned to a patch version", name, service.Image)
		}
		runsOnce := false // a service whose end others wait for needs no health check
		for _, other := range project.Services {
			runsOnce = runsOnce || other.DependsOn[name].Condition == types.ServiceConditionCompletedSuccessfully
		}
		if check := service.HealthCheck; !runsOnce && (check == nil || check.Disable || len(check.Test) < 2) {
			wrong("%s: no health check", name)
		}
		for other, d := range service.DependsOn {
			if d.Condition != types.ServiceConditionHealthy && d.Condition != types.ServiceConditionCompletedSuccessfully {
				wrong("%s: waits for %s to be %s", name, other, d.Condition)
			}
		}
		for _, port := range service.Ports {
			if port.HostIP != "127.0.0.1" {
				wrong("%s: port %s is published on every address", name, port.Published)
			}
		}
		for _, volume := range service.Volumes {
			if volume.Type == types.VolumeTypeVolume {
				if other := mounted[volume.Source]; other != "" {
					wrong("%s: %s is mounted by %s, too", name, volume.Source, other)
				}
				mounted[volume.Source] = name
			} else if _, err := os.Stat(volume.Source); err != nil {
				wrong("%s: %s is mounted and is not there", name, volume.Source)
			}
		}
	}
	return found
}

// migratesAt is the first database node in a shop's list. The lock of a migration belongs to one
// node.
type migratesAt struct{ shop, node string }

func valueOf(variable *string) string {
	if variable == nil {
		return ""
	}
	return *variable
}

// scaleShopFaults checks the server addresses in a shop's settings. first belongs to the first
// shop.
func scaleShopFaults(project *types.Project, name string, first *migratesAt) (found []string) {
	wrong := func(format string, args ...any) { found = append(found, name+": "+fmt.Sprintf(format, args...)) }
	shop := project.Services[name]
	value := func(variable string) string { return valueOf(shop.Environment[variable]) }
	if value("SHOP_ADMIN_TOKEN") == "" {
		wrong("without SHOP_ADMIN_TOKEN set nobody can restock")
	}
	for variable, want := range map[string]struct {
		scheme string
		after  string // the text before the hosts
	}{"SHOP_DB_URL": {"mysql://", "@"}, "SHOP_REDIS_URL": {"redis+cluster://", "//"}} {
		if !strings.HasPrefix(value(variable), want.scheme) {
			wrong("%s does not begin with %s", variable, want.scheme)
			continue
		}
		_, hosts, _ := strings.Cut(value(variable), want.after)
		hosts, _, _ = strings.Cut(hosts, "/")
		for n, address := range strings.Split(hosts, ",") {
			host, _, _ := strings.Cut(address, ":")
			if _, ok := project.Services[host]; !ok {
				wrong("%s names %q, which is no service", variable, host)
			} else if _, waits := shop.DependsOn[host]; !waits && strings.HasPrefix(host, "galera") {
				wrong("uses %s and does not wait for it", host)
			}
			if n == 0 && want.after == "@" {
				if first.node == "" {
					*first = migratesAt{name, host}
				} else if first.node != host {
					wrong("migrates at %s and %s at %s", host, first.shop, first.node)
				}
			}
		}
	}
	return found
}

// watchedFaults compares Prometheus's targets with the shops.
func watchedFaults(prometheus []byte, shops []string) []string {
	var config struct {
		Scrapes []struct {
			Job    string `yaml:"job_name"`
			Static []struct {
				Targets []string `yaml:"targets"`
			} `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	if err := yaml.Unmarshal(prometheus, &config); err != nil {
		return []string{err.Error()}
	}
	var watched []string
	for _, s := range config.Scrapes {
		if s.Job == "shop" { // the dashboard's expressions use this job
			for _, static := range s.Static {
				for _, target := range static.Targets {
					watched = append(watched, strings.TrimSuffix(target, ":8080"))
				}
			}
		}
	}
	if !slices.Equal(watched, shops) {
		return []string{fmt.Sprintf("Prometheus watches %v as the job shop, and the shops are %v", watched, shops)}
	}
	return nil
}

func readScale(t *testing.T, name string) []byte {
	t.Helper()
	return read(t, filepath.Join("deploy/scale", name))
}
