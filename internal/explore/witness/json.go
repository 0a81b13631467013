package witness

import (
	"bytes"
	"encoding/json"
	"io"
)

func writeJSON(out io.Writer, d Document) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(d.Data)
}

// plain is a Witness without MarshalJSON, which would call itself.
type plain Witness

// MarshalJSON omits the stock and the sales records of a program's steps, since they were not read.
func (w *Witness) MarshalJSON() ([]byte, error) {
	if !w.ofProgram() {
		return unescaped((*plain)(w))
	}
	type unstocked struct {
		Step
		Stock   *int64 `json:"stock,omitempty"`
		Records *int64 `json:"records,omitempty"`
	}
	var steps []unstocked
	for _, s := range w.Steps {
		steps = append(steps, unstocked{Step: s})
	}
	return unescaped(struct {
		Schedule string      `json:"schedule"`
		Steps    []unstocked `json:"steps"`
		*plain
	}{w.Schedule, steps, (*plain)(w)})
}

// unescaped encodes v without escaping <, > and &. The outer encoder escapes these characters if it is configured to.
func unescaped(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}
