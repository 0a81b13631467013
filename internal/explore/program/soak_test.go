package program_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
	"github.com/oversell/oversell/internal/web/webtest"
)

// TestAppReduction: the full search and the reduced one have the same verdicts.
func TestAppReduction(t *testing.T) {
	tier.Soak(t, "a long search of a program")
	for _, c := range appCases {
		t.Run(c.name(), func(t *testing.T) {
			full := c.search(t, "--full")
			if full.Void > 0 || !full.Complete {
				t.Fatalf("%d void, complete %v", full.Void, full.Complete)
			}
			if (full.Violations > 0) != (c.violating > 0) || full.Explored < c.orders {
				t.Errorf("%d of all %d orders break, and reduced %d of %d", full.Violations, full.Explored, c.violating, c.orders)
			}
			t.Logf("%d of %d", full.Violations, full.Explored)
		})
	}
}

// TestAppHeldBack: the explorer, the program and the servers share a tenth of a processor. Each
// example has its usual result, or its runs are discarded, but it never has another verdict.
func TestAppHeldBack(t *testing.T) {
	tier.Soak(t, "a long search of a program")
	for _, c := range appCases {
		t.Run(c.name(), func(t *testing.T) {
			file := shoptest.Example(t, c.file)
			args := []string{"explore", "--app", file, "--json", "--budget", "10m"}
			if c.events != "" {
				args = append(args, "--events", c.events)
			}
			cmd := shoptest.Command(t, args...)
			heldBack(t, cmd)
			var errs strings.Builder
			cmd.Stderr = &errs
			out, err := cmd.Output()
			var r explore.Report
			if json.Unmarshal(out, &r) != nil {
				t.Fatalf("%v: %s%s", err, out, errs.String())
			}
			if r.Void == 0 && r.Complete {
				c.found(t, r)
			}
			if c.violating == 0 && r.Violations > 0 || r.Void == 0 && !r.Complete {
				t.Errorf("%d of %d orders break, complete %v, %d void (%v)", r.Violations, r.Explored, r.Complete, r.Void, r.Voids)
			}
			t.Logf("%d of %d orders break, %d void (%v), %.0f s", r.Violations, r.Explored, r.Void, r.Voids, r.Seconds)
		})
	}
}

// heldBack limits the command and its children to a tenth of a processor: 10 ms in each 100 ms
// (control group v2's cpu.max, v1's cpu.cfs_quota_us). It skips the test if this is not permitted.
func heldBack(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	name := fmt.Sprintf("oversell-test-%d", os.Getpid())
	var group string
	for parent, limits := range map[string]map[string]string{
		"/sys/fs/cgroup/cpu": {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "10000"},
		"/sys/fs/cgroup":     {"cpu.max": "10000 100000"},
	} {
		group = filepath.Join(parent, name)
		if limit(group, limits) == nil {
			break
		}
		_ = os.Remove(group)
		group = ""
	}
	if group == "" {
		t.Skip("no control group of processors may be made here")
	}
	t.Cleanup(func() {
		webtest.Eventually(t, "the control group is empty", func() bool { return os.Remove(group) == nil })
	})
	quoted := strconv.Quote(filepath.Join(group, "cgroup.procs"))
	cmd.Args = append([]string{"sh", "-c", "echo $$ > " + quoted + ` && exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
}

// limit creates a control group.
func limit(group string, limits map[string]string) error {
	if err := os.Mkdir(group, 0o755); err != nil {
		return err
	}
	for name, value := range limits {
		if err := os.WriteFile(filepath.Join(group, name), []byte(value), 0o644); err != nil {
			return err
		}
	}
	return nil
}
