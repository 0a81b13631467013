package history_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/require"
)

func newLog(t *testing.T, path string) *history.Log {
	t.Helper()
	log, err := history.NewLog(path)
	require.NoError(t, err)
	return log
}

// TestFile: the file contains the events in order of arrival, one per line, in a form that other programs read.
func TestFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a", "b", "history.ndjson")
	log := newLog(t, path)
	at := time.Date(2026, 11, 22, 5, 0, 0, 0, time.UTC)
	left := int64(0)
	log.Add(history.Event{Kind: history.Call, At: at, Strategy: "redis", Product: "apple", Purchaser: "ann"})
	log.Add(history.Event{
		Kind: history.Return, At: at, Strategy: "redis", Product: "apple", Purchaser: "ann",
		Token: "7", Outcome: "sold", Amount: 1, Left: &left,
	})
	require.NoError(t, log.Close())
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	want := `{"kind":"call","at":"2026-11-22T05:00:00Z","strategy":"redis","product":"apple","purchaser":"ann"}
{"kind":"return","at":"2026-11-22T05:00:00Z","strategy":"redis","product":"apple","purchaser":"ann","token":"7","outcome":"sold","amount":1,"left":0}
`
	expect.Equal(t, string(got), want)
}

// TestWait: Wait accepts an earlier event, waits for a later one, and ends with its context.
func TestWait(t *testing.T) {
	t.Parallel()
	log := newLog(t, "")
	named := func(name string) func(history.Event) bool {
		return func(e history.Event) bool { return e.Purchaser == name }
	}
	log.Add(history.Event{Kind: history.Call, Purchaser: "ann"})
	log.Add(history.Event{Kind: history.Return, Purchaser: "ann"})
	if e, ok := log.Wait(t.Context(), named("ann")); !ok || e.Kind != history.Call {
		t.Errorf("got %v, %t; want the first event of ann", e, ok)
	}

	type result struct {
		event history.Event
		ok    bool
	}
	waited := make(chan result)
	asked := make(chan struct{}, 10)
	go func() {
		e, ok := log.Wait(t.Context(), func(e history.Event) bool {
			asked <- struct{}{}
			return named("bob")(e)
		})
		waited <- result{e, ok}
	}()
	<-asked // the wait has seen the events so far
	<-asked
	log.Add(history.Event{Kind: history.Call, Purchaser: "eve"})
	log.Add(history.Event{Kind: history.Call, Purchaser: "bob"})
	if got := <-waited; !got.ok || got.event.Purchaser != "bob" {
		t.Errorf("got %v, %t; want bob's", got.event, got.ok)
	}

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if e, ok := log.Wait(ended, named("nobody")); ok {
		t.Errorf("got %v after the context had ended", e)
	}
}

// TestTogether: events of several goroutines are complete, in memory and in the file.
func TestTogether(t *testing.T) {
	t.Parallel()
	const writers, each = 8, 50
	path := filepath.Join(t.TempDir(), "history.ndjson")
	log := newLog(t, path)
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			for n := range each {
				log.Add(history.Event{Kind: history.Call, Purchaser: strconv.Itoa(i), Amount: int64(n)})
			}
		})
	}
	all.Wait()
	require.NoError(t, log.Close())
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	var written []history.Event
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var e history.Event
		require.NoError(t, json.Unmarshal(lines.Bytes(), &e), lines.Text())
		written = append(written, e)
	}
	kept := log.Events()
	if len(kept) != writers*each || len(written) != len(kept) {
		t.Fatalf("%d events kept, %d written; want %d", len(kept), len(written), writers*each)
	}
	next := map[string]int64{}
	for i, e := range kept {
		if e.Purchaser != written[i].Purchaser || e.Amount != written[i].Amount {
			t.Fatalf("event %d: %v in memory, %v in the file", i, e, written[i])
		}
		if e.Amount != next[e.Purchaser] {
			t.Fatalf("writer %s: event %d, want %d", e.Purchaser, e.Amount, next[e.Purchaser])
		}
		next[e.Purchaser]++
	}
	kept[0].Purchaser = "changed"
	if log.Events()[0].Purchaser == "changed" {
		t.Error("Events hands out the log's own memory")
	}
}

// TestCannotWrite: a folder that cannot be created is an error at once. A full disk is an error at
// Close, and the events are still in memory.
func TestCannotWrite(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	if _, err := history.NewLog(filepath.Join(file, "history.ndjson")); err == nil {
		t.Error("a log below a file was made")
	}
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skipf("no device that is always full: %v", err)
	}
	log := newLog(t, "/dev/full")
	log.Add(history.Event{Kind: history.Call})
	log.Add(history.Event{Kind: history.Return})
	expect.ErrorIs(t, log.Close(), syscall.ENOSPC, "Close")
	expect.Equal(t, len(log.Events()), 2, "events")
}
