package history

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// A Log collects the events of one run from several processes, in memory and as NDJSON in a file.
// Its methods may be called by several goroutines.
type Log struct {
	mu      sync.Mutex
	file    *os.File
	events  []Event
	err     error         // the first write error
	changed chan struct{} // closed at the next event
}

// NewLog creates the file and its folders; "" means no file.
func NewLog(path string) (*Log, error) {
	l := &Log{changed: make(chan struct{})}
	if path == "" {
		return l, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	var err error
	l.file, err = os.Create(path)
	return l, err
}

// Add appends an event.
func (l *Log) Add(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
	if l.file != nil && l.err == nil {
		l.err = json.NewEncoder(l.file).Encode(e)
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// Events returns the events so far, in order of arrival.
func (l *Log) Events() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}

// Wait returns the first event for which `fits` returns true, earlier events included. It returns false if ctx
// ends first.
func (l *Log) Wait(ctx context.Context, fits func(Event) bool) (Event, bool) {
	for seen := 0; ; {
		l.mu.Lock()
		events, changed := l.events[seen:], l.changed
		l.mu.Unlock()
		for _, e := range events {
			if fits(e) {
				return e, true
			}
		}
		seen += len(events)
		select {
		case <-changed:
		case <-ctx.Done():
			return Event{}, false
		}
	}
}

// Close closes the file. It returns the first write error.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	if err := l.file.Close(); l.err == nil {
		l.err = err
	}
	return l.err
}
