package report

import (
	"encoding/json"
	"io"
)

func jsonFormat() Format {
	return Format{Ending: ".json", What: "JSON", Write: func(w io.Writer, d Document) error { return JSON(w, d.Value) }}
}

// JSON writes a value as every command prints it: indented, and without escaping <, > and &.
func JSON(w io.Writer, v any) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(v)
}
