package problem_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/web/problem"
)

func serve(target string, handlers ...gin.HandlerFunc) *httptest.ResponseRecorder {
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.GET("/", handlers...)
	w := httptest.NewRecorder()
	router.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
	return w
}

// TestWrite: a problem follows RFC 9457, has the outcome and the request's id, and ends the answer.
func TestWrite(t *testing.T) {
	w := serve("/",
		func(c *gin.Context) { c.Header(problem.RequestIDHeader, "r-1") },
		func(c *gin.Context) {
			problem.Write(c, http.StatusConflict, "sold_out", "the first\nthe second")
		},
		func(c *gin.Context) { c.String(http.StatusOK, "sold after all") },
	)
	expect.Equal(t, w.Header().Get("Content-Type"), problem.ContentType, "content type")
	expect.Equal(t, w.Code, http.StatusConflict, "status")
	want := `{"type":"about:blank","title":"Conflict","status":409,"detail":"the first; the second","outcome":"sold_out","request_id":"r-1"}`
	expect.Equal(t, w.Body.String(), want)
}

// TestJSON: the output equals that of encoding/json.
func TestJSON(t *testing.T) {
	for _, text := range []string{
		"", "sold out: 0 left", `"<apple>" & co\n`, "\r\t\x00\x7f", "ünïcode 🍎", "\u2028", "not UTF-8 \xff", strings.Repeat("long ", 100),
	} {
		w := httptest.NewRecorder()
		w.Header().Set(problem.RequestIDHeader, text)
		problem.Reply(w, http.StatusConflict, text, text)
		want, err := json.Marshal(problem.Details{Type: "about:blank", Title: "Conflict", Status: 409, Detail: text, Outcome: text, RequestID: text})
		if err != nil || w.Body.String() != string(want) {
			t.Errorf("%q: got  %s\nwant %s, %v", text, w.Body, want, err)
		}
	}
}

// TestCheckQuery: a query is read completely or refused.
func TestCheckQuery(t *testing.T) {
	for _, c := range []struct{ query, says string }{
		{"", ""},
		{"product=apple&purchaser=ann", ""},
		{"product=", ""},
		{"product=a%20pple", ""},
		{"product=apple&product=pear", `"product" is there 2 times`},
		{"amount=1&amount=1&amount=1", `"amount" is there 3 times`},
		{"product=%zz", "query: "},
		{"product=apple;purchaser=ann", "query: "},
	} {
		reached := false
		w := serve("/?"+c.query, problem.CheckQuery, func(ctx *gin.Context) { reached = true; ctx.Status(http.StatusOK) })
		var body problem.Details
		if err := json.Unmarshal(w.Body.Bytes(), &body); c.says != "" && err != nil {
			t.Fatal(err)
		}
		switch {
		case c.says == "" && (!reached || w.Code != http.StatusOK):
			t.Errorf("?%s: %d %s, want it to pass", c.query, w.Code, w.Body)
		case c.says != "" && (reached || w.Code != http.StatusBadRequest || body.Outcome != "failed" || !strings.Contains(body.Detail, c.says)):
			t.Errorf("?%s: reached %t, %d %+v; want 400 with %q", c.query, reached, w.Code, body, c.says)
		}
	}
}
