package sizing

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strings"
)

// A field is a column of a CSV file, or a line above the table, with its value.
type field struct {
	name  string
	value any // pointer to a string, int, int64, float64 or []float64
}

// fields returns the lines above the table.
func (m *Measured) fields() []field {
	return []field{{"when", &m.When}, {"cores", &m.Cores}, {"server", &m.Server}, {"provisional", &m.Provisional}}
}

// fields returns the columns of the table.
func (p *Point) fields() []field {
	return []field{
		{"strategy", &p.Strategy},
		{"database", &p.Database},
		{"nodes", &p.Nodes},
		{"writers", &p.Writers},
		{"processes", &p.Processes},
		{"products", &p.Products},
		{"buyers", &p.Buyers},
		{"delay_ms", &p.DelayMS},
		{"records", &p.Records},
		{"per_second", &p.PerSecond},
		{"rounds", &p.Rounds},
		{"refused", &p.Refused},
		{"cpu_database_ms", &p.CPU.Database},
		{"cpu_shop_ms", &p.CPU.Shop},
		{"cpu_locks_ms", &p.CPU.Locks},
		{"cpu_buyers_ms", &p.CPU.Buyers},
		{"others", &p.Others},
		{"statement_ms", &p.Servers.StatementMS},
		{"commit_ms", &p.Servers.CommitMS},
		{"redis_ms", &p.Servers.RedisMS},
	}
}

// writeCSV writes a line for each field of m, the names of the columns, and a line for each
// point.
func (m Measured) writeCSV() ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	for _, f := range m.fields() {
		_ = w.Write([]string{f.name, f.format()}) // w.Error reports the error
	}
	line := func(of []field, part func(field) string) {
		var all []string
		for _, f := range of {
			all = append(all, part(f))
		}
		_ = w.Write(all)
	}
	line(new(Point).fields(), func(f field) string { return f.name })
	for _, p := range m.Points {
		line(p.fields(), field.format)
	}
	w.Flush()
	return b.Bytes(), w.Error()
}

// readCSV reads the output of writeCSV.
func readCSV(text []byte) (m Measured, _ error) {
	r := csv.NewReader(bytes.NewReader(text))
	r.FieldsPerRecord = -1 // lines above the table have two fields
	lines, err := r.ReadAll()
	if err != nil {
		return m, err
	}
	head := m.fields()
	if len(lines) <= len(head) {
		return m, fmt.Errorf("%d lines; the columns begin at line %d", len(lines), len(head)+1)
	}
	for i, f := range head {
		if line := lines[i]; len(line) != 2 || line[0] != f.name {
			return m, fmt.Errorf("line %d is not %s and its value", i+1, f.name)
		}
		if err := f.parse(lines[i][1]); err != nil {
			return m, err
		}
	}
	m.Points = make([]Point, len(lines)-len(head)-1)
	names := lines[len(head)]
	for i, line := range lines[len(head)+1:] {
		columns := m.Points[i].fields()
		if len(line) != len(columns) || len(names) != len(columns) {
			return m, fmt.Errorf("point %d has %d columns of %d", i+1, len(line), len(columns))
		}
		for n, f := range columns {
			if names[n] != f.name {
				return m, fmt.Errorf("column %d is %q and not %s", n+1, names[n], f.name)
			}
			if err := f.parse(line[n]); err != nil {
				return m, fmt.Errorf("point %d: %w", i+1, err)
			}
		}
	}
	return m, nil
}

// format returns the value in JSON, with spaces between the values of a list.
func (f field) format() string {
	if text, isText := f.value.(*string); isText {
		return *text
	}
	text, _ := json.Marshal(f.value) // the values are finite numbers or text
	return strings.ReplaceAll(strings.Trim(string(text), "[]"), ",", " ")
}

func (f field) parse(text string) error {
	switch v := f.value.(type) {
	case *string:
		*v = text
		return nil
	case *[]float64:
		text = "[" + strings.Join(strings.Fields(text), ",") + "]"
	}
	if err := json.Unmarshal([]byte(text), f.value); err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	return nil
}
