package system

import (
	"context"

	"github.com/oversell/oversell/internal/judge/ci/format"
)

// gitLab writes the code quality report for merge requests. GitLab reads this file and junit.xml if the job
// lists them under artifacts:reports.
func gitLab() System {
	return System{
		Name:    "GitLab",
		Present: func(env Env) bool { return env("GITLAB_CI") != "" },
		Root:    func(env Env) string { return env("CI_PROJECT_DIR") },
		Publish: func(_ context.Context, p Publication) []error {
			return []error{format.CodeQuality(p.Folder, p.Result)}
		},
	}
}
