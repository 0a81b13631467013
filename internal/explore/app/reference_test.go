package app

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/oversell/oversell/internal/require"
)

// TestReference: docs/reference/yaml.md lists exactly the keys that a file may have. Its example is
// valid except for the schema, which does not exist.
func TestReference(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/yaml.md")
	require.NoError(t, err)
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^- `([a-z.-]+)(?:: accepted)?`:").FindAllSubmatch(text, -1) {
		listed = append(listed, string(row[1]))
	}
	accepted := keys(reflect.TypeFor[file]())
	for _, key := range requestKeys {
		accepted = append(accepted, "buyer."+key)
	}
	for _, key := range answerKeys {
		accepted = append(accepted, "sold."+key, "refused."+key)
	}
	accepted = append(accepted, "before.name", "before.values", "requests.name")
	slices.Sort(listed)
	slices.Sort(accepted)
	if !slices.Equal(listed, accepted) {
		t.Errorf("the page lists %q\nthe program accepts %q", listed, accepted)
	}
	example := regexp.MustCompile("(?s)```yaml\n(.*?)schema: schema.sql\n(.*?)```").FindSubmatch(text)
	if example == nil {
		t.Fatal("the page has no file with a schema")
	}
	if _, err := load(t, string(example[1])+string(example[2])); err != nil {
		t.Error(err)
	}
}
