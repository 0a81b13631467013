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

// Curl reads commands of curl, such as those that a browser copies. Lines that begin with # are
// comments.
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
		var r app.Request
		r, words, err = curl(words[1:])
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

// noValue lists options of curl without a value that do not change the request, and separators of
// commands.
var noValue = []string{
	"-s", "--silent", "-S", "--show-error", "-k", "--insecure", "-i", "--include", "-v", "--verbose", "-L", "--location", "--compressed", "-f", "--fail",
	"-g", "--globoff", "-#", ";", "&", "&&",
}

// ignored lists options of curl with a value that do not change the request.
var ignored = []string{"-o", "--output", "-m", "--max-time", "--connect-timeout", "--retry", "-w", "--write-out"}

// curl reads the words of a command without its name. The result `rest` begins with the next command.
func curl(words []string) (r app.Request, rest []string, err error) {
	var data []string
	get := false
	for len(words) > 0 && words[0] != "curl" {
		word := words[0]
		words = words[1:]
		option, value, joined := strings.Cut(word, "=")
		if !strings.HasPrefix(option, "--") {
			option, joined = word, false
		}
		isShort := len(option) > 2 && option[0] == '-' && option[1] != '-'
		if alone := option[:min(len(option), 2)]; isShort && (slices.Contains(noValue, alone) || alone == "-G" || alone == "-I") { // -sX
			words = append([]string{"-" + option[2:]}, words...)
			option, isShort = alone, false
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
			if r.URL != "" {
				return r, nil, fmt.Errorf("it has two URLs, %s and %s: write a command for each", r.URL, option)
			}
			r.URL = strings.TrimSuffix(option, ";")
			continue
		case isShort: // -XPOST
			option, value, joined = option[:2], option[2:], true
		}
		if !joined {
			if len(words) == 0 {
				return r, nil, fmt.Errorf("%s needs a value", option)
			}
			value, words = words[0], words[1:]
		}
		switch option {
		case "-X", "--request":
			r.Method = value
		case "-H", "--header":
			name, text, _ := strings.Cut(value, ":")
			addHeader(&r, strings.TrimSpace(name), strings.TrimSpace(text))
		case "-d", "--data", "--data-raw", "--data-binary", "--data-ascii", "--json":
			if strings.HasPrefix(value, "@") && option != "--data-raw" {
				return r, nil, fmt.Errorf("%s %s names a file: write the body itself", option, value)
			}
			if data = append(data, value); option == "--json" {
				addHeader(&r, "Content-Type", "application/json")
			}
		case "-b", "--cookie":
			if !strings.Contains(value, "=") {
				return r, nil, fmt.Errorf("%s %s names a file: write the cookies themselves, for example -b session=abc", option, value)
			}
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
				return r, nil, fmt.Errorf("the option %s is not supported: leave it out", option)
			}
		}
	}
	if r.URL == "" {
		return r, nil, fmt.Errorf("it has no URL")
	}
	body := strings.Join(data, "&")
	switch {
	case get && body != "":
		r.URL += map[bool]string{true: "&", false: "?"}[strings.Contains(r.URL, "?")] + body
	case data != nil && !get:
		r.Body = body
		if r.Header["Content-Type"] == "" {
			addHeader(&r, "Content-Type", "application/x-www-form-urlencoded")
		}
	}
	if r.Method == "" {
		r.Method = http.MethodGet
		if data != nil && !get {
			r.Method = http.MethodPost
		}
	}
	return r, words, nil
}
