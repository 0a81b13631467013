package measure

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/expect"
)

// TestParseStat: a process's name may have brackets and spaces.
func TestParseStat(t *testing.T) {
	t.Parallel()
	p, err := parseStat([]byte("42 (a (b) c) S 7 42 42 0 -1 4194560 1 0 0 0 12 3 0 0 20 0 1 0 5 6 7\n"))
	if err != nil || p.id != 42 || p.parent != 7 || p.ms != 150 {
		t.Errorf("%+v, %v", p, err)
	}
	for _, text := range []string{"", "42 no name", "42 (x) S 7", "x (x) S 7 42 42 0 -1 4194560 1 0 0 0 12 3"} {
		if _, err := parseStat([]byte(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

// TestDescends: grandchildren count, unrelated processes do not.
func TestDescends(t *testing.T) {
	t.Parallel()
	all := map[int]process{2: {parent: 1}, 3: {parent: 2}, 4: {parent: 9}, 5: {parent: 5}}
	for id, want := range map[int]bool{2: true, 3: true, 4: false, 5: false, 6: false} {
		expect.Equal(t, descends(all, id, 1), want, id)
	}
}

// TestLoad: sales count after the warm-up, and refusals are a share.
func TestLoad(t *testing.T) {
	t.Parallel()
	var all atomic.Int64
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := all.Add(1)
		if r.URL.Query().Get("product") != "pear" {
			http.Error(w, "", http.StatusNotFound)
		}
		if n%4 == 0 {
			w.WriteHeader(http.StatusConflict)
			return
		}
		fmt.Fprintf(w, `{"id": %d}`, n)
	}))
	defer shop.Close()
	load := Load{
		URLs: []string{shop.URL}, Strategy: "any", Product: "pear", Buyers: 2,
		WarmUp: 50 * time.Millisecond, Duration: time.Second,
	}
	r, err := load.Run(t.Context())
	if err != nil || r.PerSecond <= 0 || r.PerSecond > float64(all.Load()) || r.Refused < 0.1 || r.Refused > 0.4 || r.FirstNo == "" {
		t.Errorf("%+v, %v; %d requests", r, err, all.Load())
	}
	if used, err := CPUTime(); runtime.GOOS == "linux" && (err != nil || used <= 0) {
		t.Errorf("the load used %g ms, %v", used, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	expect.ErrorIs(t, expect.ErrorOf(load.Run(ended)), context.Canceled, "after its end")
}
