// Package webtest sends requests to a running shop, for tests that start one.
package webtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/web/problem"
)

// Patience is the time after which a test reports a step as stuck. A burst for each of 25
// strategies takes more than 90 s on a busy machine with the race detector.
const Patience = 5 * time.Minute

// A Response has the parts of an answer that tests check.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Call sends one request.
func Call(t testing.TB, method, url, body string, header http.Header) Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	for name, values := range header {
		request.Header[name] = values
	}
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return Response{answer.StatusCode, answer.Header, text}
}

// Decode reads the JSON of a body.
func Decode[T any](t testing.TB, r Response) (v T) {
	t.Helper()
	require.NoError(t, json.Unmarshal(r.Body, &v), string(r.Body))
	return v
}

// Restock puts units on sale.
func Restock(t testing.TB, base, product string, units int) {
	t.Helper()
	r := Call(t, http.MethodPut, base+"/product/"+url.PathEscape(product), fmt.Sprintf(`{"amount":%d}`, units), nil)
	RequireOK(t, r, "restock")
}

// Audit returns stock and records of a product.
func Audit(t testing.TB, base, product string) audit.Sums {
	t.Helper()
	return Decode[audit.Sums](t, Call(t, http.MethodGet, base+"/audit?product="+url.QueryEscape(product), "", nil))
}

// RequireOK ends the test unless the status is 200. A failure's message begins with the parameter `about`.
func RequireOK(t testing.TB, r Response, about string) {
	t.Helper()
	if r.Status != http.StatusOK {
		t.Fatalf("%s: %d %s", about, r.Status, r.Body)
	}
}

// WantStatus checks the status. A failure's message begins with the parameter `about`.
func WantStatus(t testing.TB, r Response, status int, about ...any) {
	t.Helper()
	expect.Equal(t, r.Status, status, append(about, string(r.Body))...)
}

// WantProblem checks status, outcome and form of an error response, and that its detail contains each text in
// `says`.
func WantProblem(t testing.TB, r Response, status int, outcome string, says ...string) problem.Details {
	t.Helper()
	p := Decode[problem.Details](t, r)
	if r.Status != status || p.Status != status || p.Outcome != outcome {
		t.Errorf("%d %s, want %d with outcome %s", r.Status, r.Body, status, outcome)
	}
	expect.Equal(t, r.Header.Get("Content-Type"), problem.ContentType, "content type")
	if p.Detail == "" || p.Title != http.StatusText(status) || p.RequestID == "" || strings.Contains(p.Detail, "\n") {
		t.Errorf("not a clear problem: %s", r.Body)
	}
	for _, part := range says {
		expect.Contains(t, p.Detail, part, "detail")
	}
	return p
}

// Eventually polls `done` until it returns true, and fails the test after the duration Patience.
func Eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Patience); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", Patience, what)
		}
	}
}

// HeldUpBuy locks a product's row, starts a buy that waits for this row, and returns once the buy is in
// flight. The function `letGo` unlocks the row.
func HeldUpBuy(t testing.TB, db *gorm.DB, base string) (bought <-chan Response, letGo func()) {
	t.Helper()
	hold := db.Begin()
	require.NoError(t, hold.Exec("SELECT id FROM product WHERE name = 'apple' FOR UPDATE").Error)
	answer := make(chan Response, 1)
	go func() { answer <- Call(t, http.MethodGet, base+"/product/buy?lock=for-update", "", nil) }()
	Eventually(t, "the buy is in flight", func() bool {
		return strings.Contains(string(Call(t, http.MethodGet, base+"/metrics", "", nil).Body), "shop_buys_in_flight 1")
	})
	return answer, func() {
		expect.NoError(t, hold.Rollback().Error)
	}
}
