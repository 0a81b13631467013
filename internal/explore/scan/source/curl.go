package source

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/kballard/go-shellquote"

	"github.com/oversell/oversell/internal/explore/app"
)

// Curl reads commands of curl, as a browser copies them. Lines that begin with # are comments.
func Curl(text []byte, origin string) (requests []app.Request, unused []string, err error) {
	var lines strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\r\n", "\n")) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			lines.WriteString(line)
		}
	}
	if strings.Contains(lines.String(), " $'") {
		return nil, nil, fmt.Errorf("$'...' is not supported: write the body in single quotes")
	}
	words, err := shellquote.Split(lines.String())
	if err != nil {
		return nil, nil, fmt.Errorf("it is no list of curl commands: %w", err)
	}
	for n := 1; len(words) > 0; n++ {
		if words[0] != "curl" {
			return nil, nil, fmt.Errorf("command %d begins with %q; expected curl", n, words[0])
		}
		end := slices.Index(words[1:], "curl") + 1
		if end == 0 {
			end = len(words)
		}
		r, err := curl(words[1:end])
		words = words[end:]
		target := r.URL
		switch r.URL = at(target, origin); {
		case err != nil:
			return nil, nil, fmt.Errorf("command %d: %w", n, err)
		case r.URL == "":
			unused = append(unused, fmt.Sprintf("command %d: %q does not go to %s, where the program serves: change its URL", n, target, origin))
		default:
			requests = append(requests, r)
		}
	}
	return requests, unused, nil
}

// noValue are options of curl without a value that change nothing here.
var noValue = []string{
	"-s", "--silent", "-S", "--show-error", "-k", "--insecure", "-i", "--include", "-v", "--verbose", "-L", "--location", "--compressed", "-f", "--fail",
	"-sS", "-g", "--globoff", "-#", ";", "&",
}

// ignored are options of curl with a value that changes nothing here.
var ignored = []string{"-o", "--output", "-m", "--max-time", "--connect-timeout", "--retry", "-w", "--write-out"}

// curl reads the words of a command without its name.
func curl(words []string) (r app.Request, err error) {
	var data []string
	get := false
	for i := 0; i < len(words); i++ {
		option, value, joined := strings.Cut(words[i], "=")
		if !strings.HasPrefix(option, "--") {
			option, joined = words[i], false
		}
		switch {
		case slices.Contains(noValue, option):
			continue
		case option == "-G" || option == "--get":
			get = true
			continue
		case option == "-I" || option == "--head":
			r.Method = http.MethodHead
			continue
		case !strings.HasPrefix(option, "-"):
			r.URL = strings.TrimSuffix(option, ";")
			continue
		case len(option) > 2 && option[1] != '-': // -XPOST
			option, value, joined = option[:2], option[2:], true
		}
		if !joined {
			if i++; i == len(words) {
				return r, fmt.Errorf("%s needs a value", option)
			}
			value = words[i]
		}
		switch option {
		case "-X", "--request":
			r.Method = value
		case "-H", "--header":
			name, text, _ := strings.Cut(value, ":")
			addHeader(&r, strings.TrimSpace(name), strings.TrimSpace(text))
		case "-d", "--data", "--data-raw", "--data-binary", "--data-ascii", "--json":
			if strings.HasPrefix(value, "@") && option != "--data-raw" {
				return r, fmt.Errorf("%s %s names a file: write the body itself", option, value)
			}
			if data = append(data, value); option == "--json" {
				addHeader(&r, "Content-Type", "application/json")
			}
		case "-b", "--cookie":
			addHeader(&r, "Cookie", value)
		case "-A", "--user-agent":
			addHeader(&r, "User-Agent", value)
		case "-e", "--referer":
			addHeader(&r, "Referer", value)
		case "-u", "--user":
			addHeader(&r, "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(value)))
		case "--url":
			r.URL = value
		default:
			if !slices.Contains(ignored, option) {
				return r, fmt.Errorf("the option %s is not supported: leave it out", option)
			}
		}
	}
	if r.URL == "" {
		return r, fmt.Errorf("it has no URL")
	}
	body := strings.Join(data, "&")
	switch {
	case get && body != "":
		r.URL += map[bool]string{true: "&", false: "?"}[strings.Contains(r.URL, "?")] + body
	case body != "":
		r.Body = body
		if r.Header["Content-Type"] == "" {
			addHeader(&r, "Content-Type", "application/x-www-form-urlencoded")
		}
	}
	if r.Method == "" {
		r.Method = http.MethodGet
		if r.Body != "" {
			r.Method = http.MethodPost
		}
	}
	return r, nil
}
