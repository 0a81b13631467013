package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/judge/verify"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/tier"
)

func verifyAt(t *testing.T, url string, args ...string) (code int, report verify.Report, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), append([]string{"verify", "--target", url, "--json", "-"}, args...), &out, &errs)
	if out.Len() > 0 {
		require.NoError(t, json.Unmarshal(out.Bytes(), &report))
	}
	return code, report, errs.String()
}

// TestVerifyTarget judges the shop itself from outside. A strategy that breaks in a rush breaks
// here, and a correct one holds under all four conditions.
func TestVerifyTarget(t *testing.T) {
	tier.Test(t, "it serves a shop, and rushes it with nine faults")
	code, report, stderr := verifyAt(t, startServe(t, unhurried), "--strategy", "none,conditional,redis")
	if code != 0 || len(report.Cells) != 3*len(promise.OfTarget()) {
		t.Errorf("exit %d, %d cells: %s", code, len(report.Cells), stderr)
	}
	for _, c := range report.Cells {
		if c.Verdict == verdict.Inconclusive {
			t.Errorf("%s under %s: %s", c.Strategy, c.Fault, c.Evidence)
		}
		if want := c.Strategy == "none"; (c.Verdict == verdict.Oversold) != want && c.Fault == promise.Rush {
			t.Errorf("%s under %s: %s (%s)", c.Strategy, c.Fault, c.Verdict, c.Evidence)
		}
		if c.Strategy != "none" && (c.Promise != verdict.Holds || c.Verdict != verdict.Holds) {
			t.Errorf("%s under %s: promised %q, seen %s (%s)", c.Strategy, c.Fault, c.Promise, c.Verdict, c.Evidence)
		}
		if c.Struck == "" || !strings.Contains(c.Replay, "--target") {
			t.Errorf("%s under %s: %+v", c.Strategy, c.Fault, c)
		}
	}
}

// TestVerifyTargetService tests a service without the shop's code, correct or with one error. Each
// error is detected in its column, and the other columns hold.
func TestVerifyTargetService(t *testing.T) {
	tier.Test(t, "eleven services with faults that take seconds")
	t.Parallel()
	for _, c := range []struct {
		name    string
		service *service
		fault   promise.Condition
		want    verdict.Verdict
		code    int
	}{
		{"sound", &service{}, "", verdict.Holds, 0},
		{"units vanish with the first sale", &service{forgets: 5}, promise.Rush, verdict.Leaked, exitBroken},
		{"it remembers that it was sold out", &service{remembers: true}, promise.Rush, verdict.Leaked, exitBroken},
		{"it ignores the Idempotency-Key", &service{ignoresKey: true}, promise.Duplicates, verdict.Duplicated, exitBroken},
		{"a repeated request is told sold out", &service{refusesKey: true}, promise.Duplicates, verdict.Leaked, exitBroken},
		{"a repeated request is told when it was answered", &service{dates: true}, promise.Duplicates, verdict.Holds, 0},
		{"a repeated request is told busy", &service{busyKey: true}, promise.Duplicates, verdict.Inconclusive, exitInconclusive},
		{"no record when the buyer has gone", &service{dropsGone: true}, promise.ClientGone, verdict.Leaked, exitBroken},
		{"it acknowledges what it does not record", &service{loses: true}, promise.Latency, verdict.Lost, exitBroken},
		{"it has no POST", &service{getOnly: true}, promise.Duplicates, verdict.Inconclusive, exitInconclusive},
		{"it sends status 200 before it sells", &service{hasty: true}, promise.ClientGone, verdict.Failed, exitBroken},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewUnstartedServer(c.service)
			server.Config.ErrorLog = log.New(io.Discard, "", 0) // it would report an answer that was started too early
			server.Start()
			defer server.Close()
			args := []string{"--strategy", "my-lock"}
			if c.fault != "" {
				args = append(args, "--fault", string(c.fault))
			}
			code, report, stderr := verifyAt(t, server.URL, args...)
			if code != c.code || len(report.Cells) == 0 {
				t.Fatalf("exit %d, want %d; %d cells: %s", code, c.code, len(report.Cells), stderr)
			}
			for _, cell := range report.Cells {
				t.Logf("%s: %s: %s", cell.Fault, cell.Verdict, cell.Evidence)
				if cell.Verdict != c.want || cell.Promise != verdict.Holds {
					t.Errorf("%s: promised %s, %s; want %s", cell.Fault, cell.Promise, cell.Verdict, c.want)
				}
			}
		})
	}
}

// TestVerifyTargetInterrupted: Ctrl-C during a rush without answers ends the run under every fault.
// The run counts as interrupted, and no answer is judged.
func TestVerifyTargetInterrupted(t *testing.T) {
	t.Parallel()
	for _, f := range []promise.Condition{promise.ClientGone, promise.Latency, promise.Duplicates} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			shop := &service{}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/product/buy" {
					_, _ = io.Copy(io.Discard, r.Body) // the server notices a hang-up only after it has read the body
					interrupt()
					<-r.Context().Done()
					return
				}
				shop.ServeHTTP(w, r)
			}))
			defer server.Close()
			var stdout, stderr bytes.Buffer
			code := run(ctx, []string{"verify", "--target", server.URL, "--strategy", "mine", "--fault", string(f)}, &stdout, &stderr)
			if code != exitInterrupted || !strings.Contains(stderr.String(), "interrupted") {
				t.Errorf("exit %d, %q; want %d and interrupted", code, stderr.String(), exitInterrupted)
			}
		})
	}
}

// TestVerifyTargetBadInput: bad input causes one line of error and exit 2.
func TestVerifyTargetBadInput(t *testing.T) {
	tier.Test(t, "a silent address takes ten seconds")
	t.Parallel()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path == "/product/buy" {
			t.Errorf("%s %s: it is no shop", r.Method, r.URL)
		}
		_, _ = io.WriteString(w, "<!doctype html><title>Welcome</title>")
	}))
	defer page.Close()
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer silent.Close()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--target", closed.URL, "--strategy", "mine"}, "no answer from " + closed.URL},
		{[]string{"--target", other.URL, "--strategy", "mine"}, "PUT /product/apple"},
		{[]string{"--target", page.URL, "--strategy", "mine"}, "GET /audit"},
		{[]string{"--target", silent.URL, "--strategy", "mine"}, "no answer from " + silent.URL},
		{[]string{"--target", other.URL}, "--strategy"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), append([]string{"verify"}, c.args...), &stdout, &stderr)
		said := strings.TrimSpace(stderr.String())
		if code != exitHarness || strings.Count(said, "\n") != 0 || !strings.Contains(said, c.want) {
			t.Errorf("%v: exit %d, %q; want 2 and one line with %q", c.args, code, said, c.want)
		}
	}
}

// TestVerifyTargetWithoutKeys: a service may report that it ignores Idempotency-Keys. Then it does
// not fail, and the report names the condition that was left out.
func TestVerifyTargetWithoutKeys(t *testing.T) {
	tier.Test(t, "it serves a shop, and rushes it")
	t.Parallel()
	server := httptest.NewServer(&service{ignoresKey: true})
	defer server.Close()
	code, report, stderr := verifyAt(t, server.URL, "--strategy", "my-lock", "--no-idempotency-keys")
	if code != 0 || len(report.Cells) != len(promise.OfTarget())-1 {
		t.Errorf("exit %d, %d cells: %s", code, len(report.Cells), stderr)
	}
	if len(report.LeftOut) != 1 || !strings.HasPrefix(report.LeftOut[0], "duplicates: ") {
		t.Errorf("left out: %q, want duplicates", report.LeftOut)
	}
}
