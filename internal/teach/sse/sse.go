// Package sse sends server-sent events (WHATWG HTML, 9.2).
package sse

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Heartbeat is the time between two calls of Alive. The calls keep proxies from closing the stream,
// and detect that a page has gone.
const Heartbeat = 15 * time.Second

// A Stream is an open answer. It is not safe for concurrent use.
type Stream struct {
	w       http.ResponseWriter
	flusher *http.ResponseController
}

// Open begins a stream and removes the server's time-out for writes. An error means that this
// server cannot stream; nothing was written then.
func Open(w http.ResponseWriter) (Stream, error) {
	s := Stream{w, http.NewResponseController(w)}
	if err := s.flusher.SetWriteDeadline(time.Time{}); err != nil {
		return s, fmt.Errorf("this server cannot stream: %w", err)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	return s, nil
}

// Begin makes the page reconnect after a second if the stream breaks. Like Alive and Send, it returns an
// error if the page has gone.
func (s Stream) Begin() error { return s.write("retry: 1000\n\n") }

// Alive sends a comment, which the page ignores.
func (s Stream) Alive() error { return s.write(": alive\n\n") }

// Send sends one event.
func (s Stream) Send(name string, data any) error {
	body, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return s.write(fmt.Sprintf("event: %s\ndata: %s\n\n", name, body))
}

func (s Stream) write(text string) error {
	if _, err := fmt.Fprint(s.w, text); err != nil {
		return err
	}
	return s.flusher.Flush()
}
