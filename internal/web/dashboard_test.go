package web

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/web/webtest"
)

// A metric's name in an expression is a word before a label, a range, or the end of a call.
var (
	metricName = regexp.MustCompile(`\b((?:shop|process|go)_[a-z_]+)\b`)
	labelValue = regexp.MustCompile(`(\w+)!?="([^"]+)"`)
)

// TestDashboard: the shop exports every metric of a dashboard, with the labels in its expressions.
func TestDashboard(t *testing.T) {
	t.Parallel()
	base := startServe(t, engine.Config{})
	webtest.Call(t, http.MethodGet, base+"/product/buy?lock=mutex", "", nil)
	metrics := webtest.Call(t, http.MethodGet, base+"/metrics", "", nil)
	boards, err := filepath.Glob("../../deploy/scale/grafana/dashboards/*.json")
	if err != nil || len(boards) == 0 {
		t.Fatal(boards, err)
	}
	for _, file := range boards {
		for _, expr := range expressions(t, file) {
			asked := metricName.FindAllString(expr, -1)
			if len(asked) == 0 {
				t.Errorf("%s asks for no metric: %s", filepath.Base(file), expr)
			}
			for _, name := range asked {
				sample := regexp.MustCompile(`(?m)^` + name + `(\{[^}]*\})? `).FindString(string(metrics.Body))
				if sample == "" {
					t.Errorf("%s: the shop has no %s", filepath.Base(file), name)
				}
				for _, l := range labels(expr) { // job and instance come from Prometheus
					if l != "job" && l != "instance" && !strings.Contains(sample, l+`="`) {
						t.Errorf("%s: %s has no label %s: %s", filepath.Base(file), name, l, expr)
					}
				}
			}
		}
	}
}

// labels returns the labels by which an expression selects and sums.
func labels(expr string) (found []string) {
	for _, m := range labelValue.FindAllStringSubmatch(expr, -1) {
		found = append(found, m[1])
	}
	if _, by, ok := strings.Cut(expr, "by ("); ok {
		by, _, _ = strings.Cut(by, ")")
		for _, l := range strings.Split(by, ",") {
			found = append(found, strings.TrimSpace(l))
		}
	}
	return found
}

func expressions(t *testing.T, file string) (found []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &board), file)
	for _, p := range board.Panels {
		if len(p.Targets) == 0 {
			t.Errorf("%s: the panel %q asks for nothing", file, p.Title)
		}
		for _, target := range p.Targets {
			found = append(found, target.Expr)
		}
	}
	return found
}
