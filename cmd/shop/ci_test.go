package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/oversell/oversell/internal/judge/ci/result"
	"github.com/oversell/oversell/internal/require"
)

// TestCIFlags: the command that repeats a check contains the flags of --args, quoted for a shell.
func TestCIFlags(t *testing.T) {
	more := moreFlags()
	require.NoError(t, more.parse("--events expire,restart --yes-this-database-may-be-wiped [::1]:3306 --full --product a;b"))
	if got, want := more.given(more.ofApp), " --events 'expire,restart' --full --yes-this-database-may-be-wiped '[::1]:3306'"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := more.given(more.ofTarget), " --product 'a;b'"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestCITarget: a running service keeps its promise, breaks it, or proves nothing in one or two attempts.
// The result of an interrupted run says that it was interrupted.
func TestCITarget(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		first, second *service
		interrupt     bool
		code          int
		attempts      []result.Status
	}{
		{"sound", &service{}, nil, false, 0, []result.Status{result.Holds}},
		{"broken", &service{ignoresKey: true}, nil, false, exitBroken, []result.Status{result.Broken}},
		{"twice nothing", &service{busyKey: true}, nil, false, exitInconclusive, []result.Status{result.Inconclusive, result.Inconclusive}},
		{"once nothing", &service{busyKey: true}, &service{}, false, 0, []result.Status{result.Inconclusive, result.Holds}},
		{"once nothing, then broken", &service{busyKey: true}, &service{ignoresKey: true}, false, exitBroken, []result.Status{result.Inconclusive, result.Broken}},
		{"interrupted", &service{}, nil, true, exitInterrupted, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			var attempts atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				shop := c.first
				if n := attempts.Load(); n > 1 && c.second != nil {
					shop = c.second
				}
				switch r.URL.Path {
				case "/strategies": // each attempt requests the strategies once
					attempts.Add(1)
				case "/product/buy":
					if c.interrupt {
						interrupt()
					}
				}
				shop.ServeHTTP(w, r)
			}))
			defer server.Close()
			out := t.TempDir()
			var stdout, stderr bytes.Buffer
			code := run(ctx, []string{"ci", "--target", server.URL, "--strategy", "mine", "--args", "--fault duplicates", "--out", out}, &stdout, &stderr)
			r, err := result.Read(filepath.Join(out, "result.json"))
			if err != nil || code != c.code {
				t.Fatalf("exit %d, %v: %s%s", code, err, &stdout, &stderr)
			}
			if c.interrupt {
				if r.OK || r.Unfinished == "" || len(r.With(result.Holds)) > 0 {
					t.Errorf("%+v", r)
				}
				return
			}
			if len(r.Checks) != 1 || r.Checks[0].Name != "mine under duplicates" || r.Checks[0].Kind != result.Verify {
				t.Fatalf("%+v", r.Checks)
			}
			var got []result.Status
			for _, a := range r.Checks[0].Attempts {
				got = append(got, a.Status)
			}
			if !slices.Equal(got, c.attempts) || r.Checks[0].Status != got[len(got)-1] {
				t.Errorf("%q, want %q: %s", got, c.attempts, r.Checks[0].Why)
			}
		})
	}
}

// TestCIBaselineIgnored: with a baseline of another version, every break counts as new, and a line says
// so.
func TestCIBaselineIgnored(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(&service{ignoresKey: true})
	defer server.Close()
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "main.json"), []byte(`{"schema": 99}`), 0o600))
	for file, says := range map[string]string{"main.json": "has schema 99, and this program reads schema 1", "none.json": "no such file or directory"} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), []string{"ci", "--target", server.URL, "--strategy", "mine", "--args", "--fault duplicates", "--out", filepath.Join(folder, "out"), "--baseline", filepath.Join(folder, file)}, &stdout, &stderr)
		if code != exitBroken || strings.Count(stderr.String(), "\n") != 1 || !strings.HasPrefix(stderr.String(), "shop: --baseline is not used: ") || !strings.HasSuffix(stderr.String(), says+"; every break counts as new\n") {
			t.Errorf("%s: exit %d: %s%s", file, code, &stdout, &stderr)
		}
	}
}
