// Package libraries reproduces bugs of Go lock libraries with the libraries themselves, on real
// servers. go.mod pins versions with the bugs. fixed.mod pins versions with fixes, if there are any:
//
//	go test -v -run TestRedislock83 .
//	go test -v -run TestRedislock83 -modfile=fixed.mod .
//
// Both commands pass. A test compares its observation with the known behaviour of the version in use.
// docs/reference/track-record.md contains the table.
package libraries

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"testing"

	"github.com/redis/go-redis/v9"
	"golang.org/x/mod/semver"

	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

func TestMain(m *testing.M) {
	redis.SetLogger(quiet{}) // go-redis logs every unreachable server, and these tests stop servers
	os.Exit(m.Run())
}

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// A bug is one row of the track record.
type bug struct {
	in    any    // a function of the module with the bug
	fixed string // the first version without the bug; "" if there is none
}

// judge compares the observation with the known behaviour of the version in use. It also fails when
// an open bug is gone, since the table is then out of date.
func (b bug) judge(t *testing.T, present bool, saw string) {
	t.Helper()
	module, version := b.version(t)
	want := b.fixed == "" || semver.Compare(version, b.fixed) < 0
	told := map[bool]string{true: "the bug is there", false: "the bug is gone"}
	if present != want {
		t.Fatalf("%s %s: %s; want that %s\n%s", module, version, told[present], told[want], saw)
	}
	t.Logf("%s %s: %s\n%s", module, version, told[present], saw)
	page, err := os.ReadFile("../../docs/reference/track-record.md")
	must(t, err)
	example := regexp.MustCompile("(?s)-run " + t.Name() + " [^\n]+a version with the bug\n.*?```text\n(.*?)```").FindSubmatch(page)
	number := regexp.MustCompile(`(:|\bv)\d[\d.]*`) // numbers to hide: ports, and the version in a path with -trimpath
	shown := fmt.Sprintf("%s %s: %s\n    %s\n", module, version, told[present], saw)
	if present && example != nil && number.ReplaceAllString(string(example[1]), "") != number.ReplaceAllString(shown, "") {
		t.Errorf("docs/reference/track-record.md shows\n%s\nwant\n%s", example[1], shown)
	}
}

// version finds the version in the path of the function's source file, since a test binary contains no
// list of its modules.
func (b bug) version(t *testing.T) (module, version string) {
	t.Helper()
	f := runtime.FuncForPC(reflect.ValueOf(b.in).Pointer())
	file, _ := f.FileLine(f.Entry())
	parts := regexp.MustCompile(`^(?:.*/pkg/mod/)?([^@]+)@(v[^/]+)/`).FindStringSubmatch(file)
	if parts == nil {
		t.Fatalf("%s was compiled from %s, which names no version", f.Name(), file)
	}
	return parts[1], parts[2]
}

func startRedis(t *testing.T) *localserver.Redis {
	t.Helper()
	r, err := localserver.StartRedis(localservertest.Group(t))
	must(t, err)
	return r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
