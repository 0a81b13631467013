package witness

import (
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
