package system

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// buildkite shows the summary as an annotation of the build (buildkite.com/docs/agent/cli/reference/annotate).
func buildkite() System {
	return System{
		Name:    "Buildkite",
		Present: func(env Env) bool { return env("BUILDKITE") == "true" },
		Root:    func(env Env) string { return env("BUILDKITE_BUILD_CHECKOUT_PATH") },
		Publish: func(ctx context.Context, p Publication) []error {
			const note = "\nThe rest is left out: Buildkite limits an annotation to 1 MiB. The file summary.md has it.\n"
			style := cmp.Or(map[int]string{0: "success", 3: "warning"}[p.Result.Exit], "error")
			// Without a step key, the step's ID takes its place. An annotation replaces an earlier annotation
			// with the same context.
			annotation := []string{"shop-ci", cmp.Or(p.Env("BUILDKITE_STEP_KEY"), p.Env("BUILDKITE_STEP_ID")), p.Folder, p.Result.Shard}
			cmd := exec.CommandContext(ctx, "buildkite-agent", "annotate", "--style", style, "--context", strings.TrimSpace(strings.Join(annotation, " ")))
			cmd.Stdin = strings.NewReader(cut(p.Summary, 1<<20, note))
			if out, err := cmd.CombinedOutput(); err != nil {
				return []error{fmt.Errorf("no annotation: buildkite-agent annotate: %w: %s", err, strings.Join(strings.Fields(string(out)), " "))}
			}
			return nil
		},
	}
}
