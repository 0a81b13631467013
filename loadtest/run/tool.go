package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/nearest"
)

// A tool is a load generator.
type tool struct {
	name, path string // path is the built program
	dir        string // folder of its module, loadtest/NAME
}

// tools has the commands of each load generator. Each command reads the output of the one before it, and the
// last one prints a result per line.
var tools = map[string]func(targets string, requests int, timeout time.Duration) [][]string{
	"vegeta": vegeta,
	"k6":     k6,
}

// vegeta returns commands that send each target once: with -lazy, vegeta ends after the last one. Without
// keep-alive each request has its own connection, and net/http then repeats no request.
func vegeta(targets string, requests int, timeout time.Duration) [][]string {
	n := fmt.Sprint(requests)
	return [][]string{
		{"attack", "-targets", targets, "-lazy", "-rate", "0", "-workers", n, "-max-workers", n, "-keepalive=false", "-timeout", timeout.String()},
		{"encode", "-to", "json"},
	}
}

func k6(targets string, requests int, timeout time.Duration) [][]string {
	return [][]string{{
		"run", "--quiet", "--no-usage-report", "--summary-mode", "disabled", "--log-format", "raw", "--console-output", "/dev/stdout",
		"-e", "TARGETS=" + targets, "-e", fmt.Sprint("BUYERS=", requests), "-e", "TIMEOUT=" + timeout.String(), "rush.js",
	}}
}

// build builds the tool from its pinned module, if the build cache does not have it.
func build(ctx context.Context, name string, stderr io.Writer) (t tool, _ error) {
	if tools[name] == nil {
		return t, nearest.Unknown("--tool", name, slices.Sorted(maps.Keys(tools)), "")
	}
	module, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return t, fmt.Errorf("go env: %w", err)
	}
	t = tool{name: name, dir: filepath.Join(filepath.Dir(string(module)), "loadtest", name)}
	if _, err := os.Stat(t.dir); err != nil {
		return t, fmt.Errorf("%w; start the load test inside the repository", err)
	}
	c := exec.CommandContext(ctx, "go", "tool", "-n", name) // prints the path of the built program
	c.Dir, c.Stderr = t.dir, stderr
	path, err := c.Output()
	if err != nil {
		return t, fmt.Errorf("build %s in %s: %w", name, t.dir, err)
	}
	t.path = strings.TrimSpace(string(path))
	return t, nil
}

// send implements rush.Config.Send.
func (t tool) send(ctx context.Context, s buyers.Sender, all []buyers.Buyer) ([]buyers.Answer, error) {
	folder, err := os.MkdirTemp("", "loadtest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	var targets bytes.Buffer
	index := map[string]int{} // index in `all` of each buyer without an answer, by URL
	for n, b := range all {
		request, err := s.Order(s.URLs[0], b)
		if err != nil {
			return nil, err
		}
		index[request.URL.String()] = n
		fmt.Fprintf(&targets, "GET %s\n", request.URL)
	}
	file := filepath.Join(folder, "targets")
	if err := os.WriteFile(file, targets.Bytes(), 0o600); err != nil {
		return nil, err
	}
	var out []byte
	for _, args := range tools[t.name](file, len(all), s.Timeout) {
		if out, err = t.output(ctx, out, args); err != nil {
			return nil, err
		}
	}
	answers := make([]buyers.Answer, len(all))
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var r result
		if err := decoder.Decode(&r); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read the results of %s: %w", t.name, err)
		}
		if n, ok := index[r.URL]; ok { // the result with which vegeta reports the end of its targets has no URL
			answers[n] = buyers.AnswerOf(r.exchange(), all[n])
			delete(index, r.URL)
		}
	}
	if len(index) > 0 {
		return nil, fmt.Errorf("%s has no result for %d of %d buyers", t.name, len(index), len(all))
	}
	return answers, nil
}

// output runs one command of the tool.
func (t tool) output(ctx context.Context, stdin []byte, args []string) ([]byte, error) {
	var stderr bytes.Buffer
	c := exec.CommandContext(ctx, t.path, args...)
	c.Dir, c.Stdin, c.Stderr = t.dir, bytes.NewReader(stdin), &stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %.500s", t.name, args[0], err, strings.Join(strings.Fields(stderr.String()), " "))
	}
	return out, nil
}

// A result is a line of `vegeta encode -to json`. rush.js prints the same members.
type result struct {
	URL       string        `json:"url"`
	Code      int           `json:"code"` // 0: no answer
	Timestamp time.Time     `json:"timestamp"`
	Latency   time.Duration `json:"latency"` // in nanoseconds
	Error     string        `json:"error"`
	Body      []byte        `json:"body"` // base64
	Headers   http.Header   `json:"headers"`
}

// exchange converts the result to a buyers.Exchange. If there was no answer, only the text of the error tells
// whether the shop may have seen the request.
func (r result) exchange() buyers.Exchange {
	x := buyers.Exchange{Status: r.Code, Header: r.Headers, Body: r.Body, Start: r.Timestamp, End: r.Timestamp.Add(r.Latency)}
	if r.Code == 0 {
		x.Err = errors.New(r.Error)
		if strings.Contains(r.Error, "timeout") || strings.Contains(r.Error, "Timeout") {
			x.Err = fmt.Errorf("%w: %s", context.DeadlineExceeded, r.Error)
		}
		x.Connected = !strings.Contains(r.Error, "dial")
	}
	return x
}
