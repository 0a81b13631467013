// Package source reads the requests of a scan from a file that a team already has: an OpenAPI document,
// a recording of a browser, or commands of curl.
//
//	OpenAPI, HAR, Curl -> []app.Request for the program at an origin
//
// It leaves out a request to another host, since the program under test is the only server in its
// network.
package source

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/app"
)

// A Format is a file format for requests. Read returns the requests to the origin. For each request
// that it cannot use, unused contains a line with what to do. The error is one line.
type Format struct {
	Name, What string // name of the flag, and name of the format for people
	Read       func(text []byte, origin string) (requests []app.Request, unused []string, err error)
}

// Formats are all formats.
func Formats() []Format {
	return []Format{
		{"openapi", "OpenAPI 3", OpenAPI},
		{"har", "HAR", HAR},
		{"curl", "curl commands", Curl},
	}
}

// File reads a file. Its errors and lines begin with the file's name.
func (f Format) File(path, origin string) ([]app.Request, []string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	requests, unused, err := f.Read(text, origin)
	for i := range unused {
		unused[i] = path + ": " + unused[i]
	}
	if err == nil && len(requests) == 0 {
		err = fmt.Errorf("no request to %s in it", origin)
		if len(unused) > 0 {
			err = fmt.Errorf("no request can be sent: %s", strings.TrimPrefix(unused[0], path+": "))
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return requests, unused, nil
}

// Origin returns the scheme, host and port of a URL, with 127.0.0.1 for each name of this machine; ""
// if there is no host.
func Origin(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return ""
	}
	host, port := u.Hostname(), u.Port()
	if host == "localhost" || host == "::1" || host == "0.0.0.0" {
		host = "127.0.0.1"
	}
	if port == "" {
		port = map[string]string{"https": "443"}[u.Scheme]
	}
	if port == "" {
		port = "80"
	}
	return u.Scheme + "://" + net.JoinHostPort(host, port)
}

// at returns the URL of a recorded request for the program under test; "" for a request to another
// origin.
func at(text, origin string) string {
	if Origin(text) != Origin(origin) {
		return ""
	}
	u, _ := url.Parse(text)
	return strings.TrimSuffix(origin, "/") + handedOn(u.RequestURI())
}

// escaped matches {{cart.id}} in the escaped form of a path, a query or a form.
var escaped = regexp.MustCompile(`%7B%7B(?:%20|\+)*([A-Za-z0-9_.-]+)(?:%20|\+)*%7D%7D`)

// handedOn returns an escaped text with its placeholders in plain form again: {{cart.id}}.
func handedOn(text string) string { return escaped.ReplaceAllString(text, "{{$1}}") }

// notSent are headers that belong to the recorded connection. Without Accept-Encoding, the answer is
// not compressed.
var notSent = []string{"Host", "Content-Length", "Connection", "Accept-Encoding", "Transfer-Encoding", "Keep-Alive", "Upgrade-Insecure-Requests"}

func addHeader(r *app.Request, name, value string) {
	name = http.CanonicalHeaderKey(name)
	if strings.HasPrefix(name, ":") || slices.Contains(notSent, name) {
		return
	}
	if r.Header == nil {
		r.Header = map[string]string{}
	}
	r.Header[name] = value
}
