package source

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/app"
)

// login matches the headers that identify a login. Other headers, such as Referer, may differ each time
// the browser loads a page.
var login = regexp.MustCompile(`(?i)auth|cookie|token|key|session`)

// HAR reads a recording (HTTP Archive 1.2). If one login sent a request several times, HAR returns the
// request once.
func HAR(text []byte, origin string) (requests []app.Request, unused []string, _ error) {
	var recording struct {
		Log struct {
			Entries []struct {
				Request struct {
					Method, URL string
					Headers     []struct{ Name, Value string }
					PostData    struct {
						MimeType, Text string
						Params         []struct{ Name, Value string }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(text, &recording); err != nil {
		return nil, nil, fmt.Errorf("it is no HAR file: %w", err)
	}
	elsewhere := 0
	var seen []string
	for _, e := range recording.Log.Entries {
		q := e.Request
		r := app.Request{Method: q.Method, URL: at(q.URL, origin), Body: q.PostData.Text}
		if r.URL == "" {
			elsewhere++
			continue
		}
		if r.Body == "" && len(q.PostData.Params) > 0 {
			form := url.Values{}
			for _, p := range q.PostData.Params {
				form.Add(p.Name, p.Value)
			}
			r.Body = handedOn(form.Encode())
		}
		key := r.Method + " " + r.URL + "\x00" + r.Body
		for _, h := range q.Headers {
			addHeader(&r, h.Name, h.Value)
			if login.MatchString(h.Name) && !strings.HasPrefix(h.Name, ":") {
				key += "\x00" + strings.ToLower(h.Name) + ": " + h.Value
			}
		}
		if !slices.Contains(seen, key) {
			seen = append(seen, key)
			requests = append(requests, r)
		}
	}
	if requests == nil && elsewhere > 0 {
		return nil, nil, fmt.Errorf("none of its %d requests goes to %s, where the program serves: record it there", elsewhere, origin)
	}
	return requests, nil, nil
}
