package witness

import (
	"bytes"
	"encoding/json"
	"io"
)

// writeJSON prints what a program reads.
func writeJSON(out io.Writer, d Document) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(d.Data)
}

// plain is a Witness without its method, which would call itself.
type plain Witness

// MarshalJSON leaves the stock and the records out of a program's steps: nobody has looked
// for them there.
func (w *Witness) MarshalJSON() ([]byte, error) {
	if w.Program == "" {
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

// unescaped is v with <, > and & as they are: whoever encodes the whole decides.
func unescaped(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}
