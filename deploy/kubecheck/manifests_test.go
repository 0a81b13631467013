// Package kubecheck tests deploy/kubernetes without a cluster.
//
// It decodes each manifest into the API's own Go type, and an unknown field is an error. It cannot
// show that a cluster admits, schedules and runs the objects. It is a separate module, since the
// shop needs none of these dependencies.
package kubecheck

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/yaml"
)

const folder = "../kubernetes"

// newObject returns an empty object of a kind that the manifests may contain, or nil for any other
// kind.
func newObject(apiVersion, kind string) any {
	switch apiVersion + " " + kind {
	case "v1 Secret":
		return &corev1.Secret{}
	case "v1 ConfigMap":
		return &corev1.ConfigMap{}
	case "v1 Service":
		return &corev1.Service{}
	case "apps/v1 Deployment":
		return &appsv1.Deployment{}
	case "apps/v1 StatefulSet":
		return &appsv1.StatefulSet{}
	case "batch/v1 Job":
		return &batchv1.Job{}
	case "policy/v1 PodDisruptionBudget":
		return &policyv1.PodDisruptionBudget{}
	}
	return nil
}

// manifests contains the objects by kind and name.
type manifests struct {
	secrets  map[string]*corev1.Secret
	configs  map[string]*corev1.ConfigMap
	services map[string]*corev1.Service
	pods     map[string]pods
	budgets  map[string]*policyv1.PodDisruptionBudget
}

// pods describes the pods of a Deployment, a StatefulSet or a Job.
type pods struct {
	kind     string
	replicas int32
	selector *metav1.LabelSelector // nil for a Job
	service  string                // of a StatefulSet
	claims   []string
	template corev1.PodTemplateSpec
}

func TestManifests(t *testing.T) {
	t.Parallel()
	for _, fault := range faults(readAll(t)) {
		t.Error(fault)
	}
}

// TestFaultsAreSeen breaks one place and expects the fault that results.
func TestFaultsAreSeen(t *testing.T) {
	t.Parallel()
	sound := readAll(t)
	for _, tt := range []struct{ name, old, new, want string }{
		{"unknown field", "      terminationGracePeriodSeconds: 30", "      terminationGraceSeconds: 30", `unknown field "terminationGraceSeconds"`},
		{"wrong type", "  replicas: 6", "  replicas: six", "cannot unmarshal"},
		{"unknown kind", "kind: Deployment", "kind: Deploymant", "apps/v1 Deploymant is no kind"},
		{"old version", "apiVersion: policy/v1\n", "apiVersion: policy/v1beta1\n", "policy/v1beta1 PodDisruptionBudget is no kind"},
		{"selects nothing", "  selector: {app: shop}", "  selector: {app: shops}", "Service shop selects no pods"},
		{"selects other pods", "    matchLabels: {app: shop}\n  template", "    matchLabels: {app: shops}\n  template", "Deployment shop does not select its own pods"},
		{"no such secret", "secretRef: {name: shop}", "secretRef: {name: shops}", "shop: Secret shops is not there"},
		{"no such config", "configMapRef: {name: shop}", "configMapRef: {name: shops}", "shop: ConfigMap shops is not there"},
		{"no such key", "subPath: sst.sql", "subPath: start.sql", "ConfigMap galera has no start.sql"},
		{"no such volume", "{name: tmp, mountPath: /tmp}", "{name: temp, mountPath: /tmp}", "shop: no volume temp"},
		{"no such port", "targetPort: http}", "targetPort: https}", "Service shop: the pods have no port https"},
		{"no headless service", "serviceName: galera", "serviceName: database", "galera: no Service database"},
		{"a node too many", "galera-2.galera:3306/", "galera-3.galera:3306/", "names galera-3.galera"},
		{"unknown host", "redis-2.redis:6379", "redis-2.cache:6379", "names redis-2.cache"},
		{"latest", "mariadb:11.4.8", "mariadb:latest", "image mariadb:latest is not pinned"},
		{"no readiness", "          readinessProbe: # a shop", "          livenessProbeX: # a shop", "unknown field"},
		{"no majority", "  maxUnavailable: 1 # two", "  maxUnavailable: 2 # two", "galera: 2 of 3 may be away"},
		{"a cluster of five", "for n in 0 1 2 3 4 5;", "for n in 0 1 2 3 4;", "the cluster is made of 5 nodes, and there are 6"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			broken := strings.Replace(sound, tt.old, tt.new, 1)
			if broken == sound {
				t.Fatalf("the manifests have no %q to break", tt.old)
			}
			if got := faults(broken); !slices.ContainsFunc(got, func(fault string) bool { return strings.Contains(fault, tt.want) }) {
				t.Errorf("got %q, want one with %q", got, tt.want)
			}
		})
	}
}

// readAll returns all manifests, one after the other.
func readAll(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob(folder + "/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var all []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(text))
	}
	return strings.Join(all, "---\n")
}

// decode reads the manifests into their types.
func decode(text string) (m manifests, _ error) {
	m = manifests{
		map[string]*corev1.Secret{}, map[string]*corev1.ConfigMap{}, map[string]*corev1.Service{}, map[string]pods{}, map[string]*policyv1.PodDisruptionBudget{},
	}
	documents := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return m, nil
		}
		if err != nil {
			return m, err
		}
		var meta metav1.TypeMeta
		if err := strict.Unmarshal(document, &meta); err != nil {
			return m, err
		}
		object := newObject(meta.APIVersion, meta.Kind)
		if object == nil {
			return m, fmt.Errorf("%s %s is no kind that is known here", meta.APIVersion, meta.Kind)
		}
		if err := strict.UnmarshalStrict(document, object); err != nil {
			return m, fmt.Errorf("%s: %w", meta.Kind, err)
		}
		m.add(object)
	}
}

func (m manifests) add(object any) {
	switch o := object.(type) {
	case *corev1.Secret:
		m.secrets[o.Name] = o
	case *corev1.ConfigMap:
		m.configs[o.Name] = o
	case *corev1.Service:
		m.services[o.Name] = o
	case *policyv1.PodDisruptionBudget:
		m.budgets[o.Name] = o
	case *batchv1.Job:
		m.pods[o.Name] = pods{kind: "Job", replicas: 1, template: o.Spec.Template}
	case *appsv1.Deployment:
		m.pods[o.Name] = pods{kind: "Deployment", replicas: *o.Spec.Replicas, selector: o.Spec.Selector, template: o.Spec.Template}
	case *appsv1.StatefulSet:
		p := pods{kind: "StatefulSet", replicas: *o.Spec.Replicas, selector: o.Spec.Selector, service: o.Spec.ServiceName, template: o.Spec.Template}
		for _, c := range o.Spec.VolumeClaimTemplates {
			p.claims = append(p.claims, c.Name)
		}
		m.pods[o.Name] = p
	}
}

// faults lists the errors in the manifests, taken together.
func faults(text string) (found []string) {
	m, err := decode(text)
	if err != nil {
		return []string{err.Error()}
	}
	for _, name := range slices.Sorted(maps.Keys(m.services)) {
		found = append(found, m.serviceFaults(m.services[name])...)
	}
	for _, name := range slices.Sorted(maps.Keys(m.pods)) {
		found = append(found, m.podFaults(name, m.pods[name])...)
	}
	for name, budget := range m.budgets {
		if most := budget.Spec.MaxUnavailable; most != nil && 2*most.IntVal >= m.pods[name].replicas {
			found = append(found, fmt.Sprintf("%s: %d of %d may be away, and the rest is no majority", name, most.IntVal, m.pods[name].replicas))
		}
	}
	return append(found, m.hostFaults(text)...)
}

func (m manifests) serviceFaults(s *corev1.Service) (found []string) {
	for _, p := range m.pods {
		if p.selector == nil || !covers(s.Spec.Selector, p.template.Labels) {
			continue
		}
		for _, port := range s.Spec.Ports {
			want := port.TargetPort.String()
			if want == "0" {
				want = port.Name
			}
			if !slices.ContainsFunc(p.template.Spec.Containers[0].Ports, func(c corev1.ContainerPort) bool { return c.Name == want }) {
				found = append(found, fmt.Sprintf("Service %s: the pods have no port %s", s.Name, want))
			}
		}
		return found
	}
	return []string{fmt.Sprintf("Service %s selects no pods", s.Name)}
}

// pinned matches a tag with a patch version, and never latest.
var pinned = regexp.MustCompile(`:v?\d+\.\d+\.\d+(-[a-z0-9.]+)?$`)

func (m manifests) podFaults(name string, p pods) (found []string) {
	wrong := func(format string, args ...any) { found = append(found, name+": "+fmt.Sprintf(format, args...)) }
	if p.selector != nil && !covers(p.selector.MatchLabels, p.template.Labels) {
		found = append(found, fmt.Sprintf("%s %s does not select its own pods", p.kind, name))
	}
	if s := m.services[p.service]; p.kind == "StatefulSet" && (s == nil || s.Spec.ClusterIP != corev1.ClusterIPNone) {
		wrong("no Service %s without an address of its own", p.service)
	}
	volumes := slices.Clone(p.claims)
	configs := map[string]string{} // by volume
	for _, v := range p.template.Spec.Volumes {
		volumes = append(volumes, v.Name)
		if v.ConfigMap != nil {
			configs[v.Name] = v.ConfigMap.Name
		}
	}
	for _, c := range p.template.Spec.Containers {
		if !pinned.MatchString(c.Image) {
			wrong("image %s is not pinned to a patch version", c.Image)
		}
		if p.kind != "Job" && c.ReadinessProbe == nil {
			wrong("nobody asks whether it is ready")
		}
		for _, from := range c.EnvFrom {
			if ref := from.SecretRef; ref != nil && m.secrets[ref.Name] == nil {
				wrong("Secret %s is not there", ref.Name)
			}
			if ref := from.ConfigMapRef; ref != nil && m.configs[ref.Name] == nil {
				wrong("ConfigMap %s is not there", ref.Name)
			}
		}
		for _, mount := range c.VolumeMounts {
			config := m.configs[configs[mount.Name]]
			switch {
			case !slices.Contains(volumes, mount.Name):
				wrong("no volume %s", mount.Name)
			case mount.SubPath != "" && (config == nil || config.Data[mount.SubPath] == ""):
				wrong("ConfigMap %s has no %s", configs[mount.Name], mount.SubPath)
			}
		}
	}
	return found
}

// These match addresses of single pods, and the loop over those of a cluster.
var (
	podAddress = regexp.MustCompile(`\b([a-z]+)-(\d+)\.([a-z]+)\b`)
	forNodes   = regexp.MustCompile(`for n in ([\d ]+);`)
)

// hostFaults checks that every pod named in text belongs to a StatefulSet, by its headless service.
func (m manifests) hostFaults(text string) (found []string) {
	for _, a := range podAddress.FindAllStringSubmatch(text, -1) {
		set, ok := m.pods[a[1]]
		var n int32
		if _, err := fmt.Sscan(a[2], &n); err != nil || !ok || set.service != a[3] || n >= set.replicas {
			found = append(found, fmt.Sprintf("a manifest names %s, which is no pod", a[0]))
		}
	}
	if nodes := forNodes.FindStringSubmatch(text); nodes == nil || len(strings.Fields(nodes[1])) != int(m.pods["redis"].replicas) {
		found = append(found, fmt.Sprintf("the cluster is made of %d nodes, and there are %d", len(strings.Fields(nodes[1])), m.pods["redis"].replicas))
	}
	return found
}

// covers reports whether labels satisfy a selector.
func covers(selector, labels map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return len(selector) > 0
}
