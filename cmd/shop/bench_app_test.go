package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/explore"
)

// BenchmarkApp explores examples as a user does. It measures schedules per second, the time until
// the first witness is printed, and the memory of the command alone, which is that of the gates and
// the search. See docs/reference/benchmarks.md.
func BenchmarkApp(b *testing.B) {
	for _, c := range appCases {
		if c.events != "" {
			continue
		}
		b.Run(c.name(), func(b *testing.B) {
			file := c.need(b)
			var rates, firsts, sizes []float64
			for range benchRounds {
				r, size := timedApp(b, file, "--full", "--budget", "10m")
				if r.Void > 0 {
					b.Errorf("%d void (%v)", r.Void, r.Voids)
				}
				rates, sizes = append(rates, r.PerSecond), append(sizes, size)
				if c.violating > 0 {
					begun := time.Now()
					timedApp(b, file, "--first")
					firsts = append(firsts, time.Since(begun).Seconds())
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(rates), "runs/s")
			b.ReportMetric(slices.Max(sizes), "MB")
			if len(firsts) > 0 {
				b.ReportMetric(median(firsts), "s-to-witness")
			}
		})
	}
}

// timedApp runs a search to its end. size is the command's maximum resident memory in MB (VmHWM in
// proc_pid_status(5)), without its child processes.
func timedApp(b *testing.B, file string, args ...string) (r explore.Report, size float64) {
	b.Helper()
	cmd := plainCommand(b, append([]string{"explore", "--app", file, "--json"}, args...)...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for status := fmt.Sprintf("/proc/%d/status", cmd.Process.Pid); ; {
		select {
		case err := <-done:
			if failed := json.Unmarshal([]byte(out.String()), &r); failed != nil {
				b.Fatalf("%v: %v: %s%s", err, failed, out.String(), errs.String())
			}
			return r, size
		case <-time.After(20 * time.Millisecond):
			size = max(size, highWater(status))
		}
	}
}

// highWater returns 0 if the process has ended.
func highWater(status string) float64 {
	text, _ := os.ReadFile(status)
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	field, _, _ := strings.Cut(strings.TrimSpace(after), " ")
	kB, _ := strconv.ParseFloat(field, 64)
	return kB / 1024
}
