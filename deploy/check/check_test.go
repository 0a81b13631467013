// Package check reads the files that deploy the shop as their tools do: with the loader of docker compose,
// BuildKit's parser of a Dockerfile, and the types of the Kubernetes API. It needs neither Docker nor a
// cluster, so it cannot show that the images exist and that the containers start.
package check

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const root = "../.."

// readers has the reader of each file.
var readers = map[string]func(text []byte) error{
	"Dockerfile":                    dockerfile,
	"docker-compose.yml":            compose,
	"deploy/scale/compose.yml":      compose,
	"deploy/kubernetes/galera.yaml": kubernetes,
	"deploy/kubernetes/redis.yaml":  kubernetes,
	"deploy/kubernetes/shop.yaml":   kubernetes,
}

// TestFiles: each file is valid, and each image has a patch version.
func TestFiles(t *testing.T) {
	t.Parallel()
	for _, name := range slices.Sorted(maps.Keys(readers)) {
		text := read(t, name)
		if err := readers[name](text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, image := range unpinned(text) {
			t.Errorf("%s: image %s is not pinned to a patch version", name, image)
		}
	}
}

// TestMistakes plants a mistake in a file, which its reader must report.
func TestMistakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ file, right, wrong, want string }{
		{"Dockerfile", "EXPOSE 8080", "EXPOSED 8080", "unknown instruction: EXPOSED"},
		{"Dockerfile", "AS build", "as build", "'as' and 'FROM' keywords' casing do not match"},
		{"docker-compose.yml", "    build: .", "    built: .", ".built false schema"},
		{"docker-compose.yml", "  redlock5: *healthy", "  redlock6: *healthy", `depends on undefined service "redlock6"`},
		{"deploy/scale/compose.yml", "    image: haproxy", "    imagine: haproxy", "proxy"},
		{"deploy/kubernetes/shop.yaml", "terminationGracePeriodSeconds", "terminationGraceSeconds", `unknown field "spec.template.spec.terminationGraceSeconds"`},
		{"deploy/kubernetes/redis.yaml", "replicas: 6", "replicas: six", "cannot unmarshal"},
		{"deploy/kubernetes/shop.yaml", "kind: Deployment", "kind: Deploymant", `no kind "Deploymant"`},
	} {
		right := string(read(t, c.file))
		wrong := strings.Replace(right, c.right, c.wrong, 1)
		if wrong == right {
			t.Errorf("%s has no %q", c.file, c.right)
		}
		if err := readers[c.file]([]byte(wrong)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %q: %v; want %q", c.file, c.wrong, err, c.want)
		}
	}
	if got := unpinned([]byte("FROM golang:1.26 AS build\nFROM build\nimage: redis\nimage: redis:7.4.1-alpine")); !slices.Equal(got, []string{"golang:1.26", "redis"}) {
		t.Errorf("not pinned: %q", got)
	}
}

// compose loads a file with all its profiles, as for a user who has set no variable.
func compose(text []byte) error {
	_, err := loader.LoadWithContext(context.Background(), types.ConfigDetails{
		WorkingDir: root, ConfigFiles: []types.ConfigFile{{Filename: "compose.yml", Content: text}}, Environment: types.Mapping{},
	}, loader.WithProfiles([]string{"*"}))
	return err
}

// dockerfile returns the errors and the warnings of BuildKit.
func dockerfile(text []byte) error {
	parsed, err := parser.Parse(bytes.NewReader(text))
	if err != nil {
		return err
	}
	var warnings []error
	_, _, err = instructions.Parse(parsed.AST, linter.New(&linter.Config{
		Warn: func(rule, _, _, message string, _ []parser.Range) {
			warnings = append(warnings, errors.New(rule+": "+message))
		},
	}))
	return errors.Join(append(warnings, err)...)
}

// kubernetes decodes each object of a file into the type of its kind. An unknown field is an error.
func kubernetes(text []byte) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme, policyv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, _, err := decoder.Decode(document, nil, nil); err != nil {
			return err
		}
	}
}

// These match the images of a file, the name of a stage in a Dockerfile, and a tag with a patch version. The
// versions of PostgreSQL and Debian have one dot.
var (
	imageLine = regexp.MustCompile(`(?m)^(?:FROM|\s*(?:- )?image:) (\S+)`)
	stageName = regexp.MustCompile(`(?m)^FROM \S+ AS (\S+)`)
	pinned    = regexp.MustCompile(`(:v?\d+\.\d+\.\d+|^(postgres|debian):\d+\.\d+)(-[a-z0-9.]+)?$`)
)

// unpinned returns the images of a file that have no patch version.
func unpinned(text []byte) (images []string) {
	for _, image := range imageLine.FindAllSubmatch(text, -1) {
		stage := slices.ContainsFunc(stageName.FindAllSubmatch(text, -1), func(s [][]byte) bool { return bytes.Equal(s[1], image[1]) })
		if !stage && !pinned.Match(image[1]) {
			images = append(images, string(image[1]))
		}
	}
	return images
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
