package client

import (
	"bufio"
	"context"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/oversell/oversell/internal/explore/app"
)

// HostPort returns the address of a URL's server.
func HostPort(target string) (string, error) {
	u, err := url.Parse(target)
	if err != nil {
		return "", err
	}
	port := u.Port()
	if port == "" {
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port), nil
}

// A Reply is the answer to a buyer.
type Reply struct {
	Status int
	Body   string
	Header http.Header
}

// Maximum number of characters of an answer that are shown. An answer with a 5xx status may be longer, since it
// describes the failure.
const (
	longestReply  = 60
	longestFailed = 300
)

// mostMasked is the number of bytes of an answer that Masked reads.
const mostMasked = 4000

// Text returns a reply in one line: "200 bought".
func (r Reply) Text() string { return r.Masked(func(text string) string { return text }) }

// Masked returns Text with the values that differ between runs replaced by mask.
func (r Reply) Masked(mask func(text string) string) string {
	longest := longestReply
	if r.Failed() {
		longest = longestFailed
	}
	shown := r.Body[:min(len(r.Body), mostMasked)]
	if page := title.FindStringSubmatch(shown); page != nil {
		shown = html.UnescapeString(page[1])
	}
	body := []rune(mask(OneLine(shown)))
	if len(body) > longest {
		body = append(body[:longest], '…')
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", r.Status, string(body)))
}

var title = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)

// OneLine makes a text valid UTF-8 and replaces each run of white space by one space.
func OneLine(text string) string {
	return strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
}

// Failed reports whether the answer is a failure of the program (5xx).
func (r Reply) Failed() bool { return r.Status >= http.StatusInternalServerError }

// Count adds a buyer to t. The buyer got the answer r or, if there was none, the error err. Status 503 is a refusal,
// not a failure.
func Count(t *app.Told, r Reply, err error, a *app.App) {
	switch {
	case err == nil && a.Sold.Has(r.Status, r.Body):
		t.Sold++
	case err != nil || r.Failed() && r.Status != http.StatusServiceUnavailable && !a.Refused.Has(r.Status, r.Body):
		t.Failed++
	}
}

const bodySize = 1 << 20

// ReadReply reads a complete answer.
func ReadReply(from *bufio.Reader, req *http.Request) (Reply, error) {
	answer, err := http.ReadResponse(from, req)
	if err != nil {
		return Reply{}, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, bodySize))
	return Reply{answer.StatusCode, string(body), answer.Header}, err
}

// NewRequest builds an HTTP request from a buyer's entry in oversell.yaml.
func NewRequest(ctx context.Context, b app.Request) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, b.Method, b.URL, strings.NewReader(b.Body))
	if err != nil {
		return nil, err
	}
	for name, value := range b.Header {
		req.Header.Set(name, value)
	}
	req.Close = true
	return req, nil
}
