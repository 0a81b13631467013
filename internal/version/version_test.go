package version

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// TestBuilds: each way to build the program gives the version and the commit that Go recorded.
func TestBuilds(t *testing.T) {
	t.Parallel()
	const commit = "238a7e2c4f0d9a5b6c7d8e9f0a1b2c3d4e5f6071"
	target := []debug.BuildSetting{{Key: "GOOS", Value: "linux"}, {Key: "GOARCH", Value: "arm64"}}
	clone := func(modified string) []debug.BuildSetting {
		return append([]debug.BuildSetting{
			{Key: "vcs.revision", Value: commit}, {Key: "vcs.time", Value: "2026-11-26T02:11:37Z"}, {Key: "vcs.modified", Value: modified},
		}, target...)
	}
	for _, test := range []struct {
		name, release, module string
		settings              []debug.BuildSetting
		want                  string
	}{
		{
			"release", "v1.2.3", "v1.2.3", clone("false"),
			"shop v1.2.3 (commit 238a7e2c4f0d of 2026-11-26T02:11:37Z, go1.26.8, linux/arm64)",
		},
		{
			"snapshot", "v1.2.4-snapshot", "v1.2.3+dirty", clone("true"),
			"shop v1.2.4-snapshot (commit 238a7e2c4f0d of 2026-11-26T02:11:37Z, with uncommitted changes, go1.26.8, linux/arm64)",
		},
		{
			"go build in a clone", "", "v0.0.0-20261126021137-238a7e2c4f0d+dirty", clone("true"),
			"shop v0.0.0-20261126021137-238a7e2c4f0d+dirty (commit 238a7e2c4f0d of 2026-11-26T02:11:37Z, with uncommitted changes, go1.26.8, linux/arm64)",
		},
		{"go install of a version", "", "v1.2.3", target, "shop v1.2.3 (go1.26.8, linux/arm64)"},
		{
			"go install of a commit", "", "v1.2.4-0.20261126021137-238a7e2c4f0d", target,
			"shop v1.2.4-0.20261126021137-238a7e2c4f0d (commit 238a7e2c4f0d, go1.26.8, linux/arm64)",
		},
		{"go run", "", "(devel)", target, "shop (devel) (go1.26.8, linux/arm64)"},
		{"a test binary", "", "", target, "shop (devel) (go1.26.8, linux/arm64)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			info := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: test.module}, Settings: test.settings}
			if got := fromInfo(test.release, info).String(); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestCurrent(t *testing.T) {
	t.Parallel()
	b := Current()
	if b.Go != runtime.Version() || b.OS != runtime.GOOS || b.Arch != runtime.GOARCH || b.Version == "" {
		t.Errorf("this build is %+v, want %s for %s/%s", b, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	}
}
