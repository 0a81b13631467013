// Package version identifies the build of the running program.
//
//	release (set by the linker) or the build information of the Go toolchain -> Build
package version

import (
	"cmp"
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"
)

// release is the version of a released binary, for example v1.2.3. The release build sets it with -ldflags -X.
// It is empty in every other build.
var release string

// A Build identifies one build of the program.
type Build struct {
	Version  string `json:"version"`  // v1.2.3, a pseudo-version of a commit, or "(devel)" if the build has no version
	Revision string `json:"revision"` // the commit in hexadecimal digits; "" if unknown
	Time     string `json:"time"`     // time of the commit, in RFC 3339; "" if unknown
	Modified bool   `json:"modified"` // whether the sources had uncommitted changes
	Go       string `json:"go"`       // the Go toolchain, for example go1.26.8
	OS       string `json:"os"`       // the target operating system, a GOOS
	Arch     string `json:"arch"`     // the target architecture, a GOARCH
}

// Current returns the build of the running program. A released binary has the version of its release. `go install`
// records the version of the module. `go build` in a clone records the commit. `go run` records neither. It is safe
// for concurrent use.
func Current() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return fromInfo(release, info)
}

// pseudo matches a version that Go derives from a commit. Its group is the first 12 digits of the commit.
var pseudo = regexp.MustCompile(`[-.]\d{14}-([0-9a-f]{12})(?:\+dirty)?$`)

// fromInfo returns the build that a toolchain recorded. release takes precedence over the version of the module.
func fromInfo(release string, info *debug.BuildInfo) Build {
	b := Build{Version: info.Main.Version, Go: info.GoVersion}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		case "GOOS":
			b.OS = s.Value
		case "GOARCH":
			b.Arch = s.Value
		}
	}
	b.Version = cmp.Or(release, b.Version, "(devel)")
	if found := pseudo.FindStringSubmatch(b.Version); b.Revision == "" && found != nil {
		b.Revision = found[1] // `go install` of a commit
	}
	return b
}

// String returns the build in one line, for example
// "shop v1.2.3 (commit 238a7e2c4f0d of 2026-11-26T02:11:37Z, go1.26.8, linux/amd64)".
func (b Build) String() string {
	var parts []string
	if b.Revision != "" {
		commit := "commit " + b.Revision[:min(len(b.Revision), 12)]
		if b.Time != "" {
			commit += " of " + b.Time
		}
		parts = append(parts, commit)
	}
	if b.Modified {
		parts = append(parts, "with uncommitted changes")
	}
	parts = append(parts, b.Go, b.OS+"/"+b.Arch)
	return fmt.Sprintf("shop %s (%s)", b.Version, strings.Join(parts, ", "))
}
