package target

import (
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// TestQuoted: the entries of a remedy form a valid YAML list, which the user can paste.
func TestQuoted(t *testing.T) {
	want := []string{"orders.*", "public.orders.at", "status", "body /at", "body /lines/*/no", "redis.stock:1", "redis.{shop}:a,b", "redis.it's", "redis.a#b", "redis.key:", "body /first name"}
	var got struct{ Except []string }
	line := "except: [" + strings.Join(quoted(want), ", ") + "]"
	if err := yaml.Unmarshal([]byte(line), &got); err != nil || !slices.Equal(got.Except, want) {
		t.Errorf("%s\nis %q, %v", line, got.Except, err)
	}
	if !strings.Contains(line, " body /at, ") || !strings.Contains(line, " redis.stock:1, ") {
		t.Errorf("needless quotes: %s", line)
	}
}
