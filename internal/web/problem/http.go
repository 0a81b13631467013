// Package problem writes the shop's errors as application/problem+json (RFC 9457). One additional member,
// "outcome", has the outcome of the buy. No other package turns an error into a response.
package problem

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"
)

// ContentType is the content type of every error.
const ContentType = "application/problem+json"

// Details is the body of an error. Type is always "about:blank", which means that the
// status names the kind of error (RFC 9457, section 4.2.1).
type Details struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail"` // the error and what to do
	Outcome   string `json:"outcome"`
	RequestID string `json:"request_id,omitempty"`
}

// RequestIDHeader carries the request's id in both directions.
const RequestIDHeader = "X-Request-Id"

// Write ends the request with a problem. It joins the lines of detail, since errors.Join gives each
// error a line of its own.
func Write(c *gin.Context, status int, outcome, detail string) {
	c.Abort()
	Reply(c.Writer, status, outcome, detail)
}

// Reply does the same as Write in a plain http.Handler.
func Reply(w http.ResponseWriter, status int, outcome, detail string) {
	body := Details{
		Type: "about:blank", Title: http.StatusText(status), Status: status,
		Detail: strings.ReplaceAll(detail, "\n", "; "), Outcome: outcome, RequestID: w.Header().Get(RequestIDHeader),
	}.appendJSON(make([]byte, 0, 256))
	w.Header().Set("Content-Type", ContentType)
	w.WriteHeader(status)
	_, _ = w.Write(body) // it fails only if the client has gone
}

// appendJSON appends the same text as json.Marshal, but faster: json.Marshal would be most of the
// cost of a refusal.
func (d Details) appendJSON(to []byte) []byte {
	to = appendString(append(to, `{"type":`...), d.Type)
	to = appendString(append(to, `,"title":`...), d.Title)
	to = strconv.AppendInt(append(to, `,"status":`...), int64(d.Status), 10)
	to = appendString(append(to, `,"detail":`...), d.Detail)
	to = appendString(append(to, `,"outcome":`...), d.Outcome)
	if d.RequestID != "" {
		to = appendString(append(to, `,"request_id":`...), d.RequestID)
	}
	return append(to, '}')
}

func appendString(to []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || strings.IndexByte(`"\<>&`, c) >= 0 {
			quoted, err := json.Marshal(text)
			if err != nil { // marshalling a string cannot fail
				panic(err)
			}
			return append(to, quoted...)
		}
	}
	return append(append(append(to, '"'), text...), '"')
}

// CheckQuery refuses a query that is malformed or has a repeated key. net/http would ignore the
// malformed part and use the first of two values, which may not be what the client wants.
func CheckQuery(c *gin.Context) {
	query, err := url.ParseQuery(c.Request.URL.RawQuery)
	if err != nil {
		Invalid(c, "query: "+err.Error())
		return
	}
	for name, values := range query {
		if len(values) > 1 {
			Invalid(c, fmt.Sprintf("query: %q is there %d times; give it once", name, len(values)))
			return
		}
	}
}

// Invalid refuses an invalid request.
func Invalid(c *gin.Context, detail string) {
	Write(c, http.StatusBadRequest, "failed", detail)
}
