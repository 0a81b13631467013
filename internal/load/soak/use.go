package soak

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A Use has the resources of one process at one moment, from its /metrics. 0 means unknown.
type Use struct {
	Heap        float64 `json:"heap_mb"` // heap in use
	Resident    float64 `json:"resident_mb"`
	Goroutines  int     `json:"goroutines"`
	Descriptors int     `json:"descriptors"`
}

// There reports whether the process answered.
func (u Use) There() bool { return u.Goroutines > 0 }

// scraper opens a new connection for each request. An idle connection of its own would change the
// counts of an idle process.
var scraper = http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// useOf reads a process's /metrics.
func useOf(ctx context.Context, url string, patience time.Duration) (Use, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/metrics", nil)
	if err != nil {
		return Use{}, err
	}
	response, err := scraper.Do(request)
	if err != nil {
		return Use{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return Use{}, fmt.Errorf("GET %s/metrics: %s", url, response.Status)
	}
	return parseUse(response.Body)
}

// parseUse parses single gauges in the Prometheus text format.
func parseUse(r io.Reader) (u Use, err error) {
	const mb = 1 << 20
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		name, text, _ := strings.Cut(lines.Text(), " ")
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			continue // a comment, or a metric whose labels contain spaces
		}
		switch name {
		case "go_memstats_heap_inuse_bytes":
			u.Heap = value / mb
		case "process_resident_memory_bytes":
			u.Resident = value / mb
		case "go_goroutines":
			u.Goroutines = int(value)
		case "process_open_fds":
			u.Descriptors = int(value)
		}
	}
	if err := lines.Err(); err != nil {
		return Use{}, err
	}
	if !u.There() {
		return Use{}, fmt.Errorf("/metrics has no go_goroutines")
	}
	return u, nil
}
