package sizing

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// Measured has the points of one machine. shop size --measure and --calibrate write it.
type Measured struct {
	When   string  `json:"when"`  // date, UTC
	Cores  float64 `json:"cores"` // processors of the machine, shared by shops, servers and buyers
	Server string  `json:"server"`

	// Provisional says why the points are provisional; "" if they are final.
	Provisional string `json:"provisional,omitempty"`

	Points []Point `json:"points"`
}

//go:embed reference.csv
var reference []byte

// Reference returns the points of docs/reference/throughput.md.
func Reference() (Measured, error) { return read("reference.csv", reference) }

// ReadFile reads a file that shop size --measure or --calibrate has written.
func ReadFile(path string) (Measured, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Measured{}, fmt.Errorf("%w; write one with: shop size --calibrate FILE", err)
	}
	return read(path, text)
}

func read(name string, text []byte) (m Measured, _ error) {
	var err error
	if isCSV(name) {
		m, err = readCSV(text)
	} else {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return m, fmt.Errorf("%s is not a file of shop size --calibrate: %w", name, err)
	}
	if m.Cores <= 0 || len(m.Points) == 0 {
		return m, fmt.Errorf("%s has no points; create them with: shop size --calibrate %s", name, name)
	}
	return m, nil
}

// File returns the points as the content of a file: CSV if the name ends with .csv, otherwise JSON.
// ReadFile reads both.
func (m Measured) File(name string) ([]byte, error) {
	if isCSV(name) {
		return m.writeCSV()
	}
	text, err := json.MarshalIndent(m, "", "\t")
	return append(text, '\n'), err
}

func isCSV(name string) bool { return strings.HasSuffix(name, ".csv") }

// Others returns the average number of processors that other programs used.
func (m Measured) Others() (mean float64) {
	for _, p := range m.Points {
		mean += p.Others / float64(len(m.Points))
	}
	return mean
}

// From describes the origin of the points.
func (m Measured) From() string {
	text := fmt.Sprintf("measured on %s with %s, %g processors for everything", m.When, m.Server, m.Cores)
	if m.Provisional != "" {
		text += "; provisional: " + m.Provisional
	}
	return text
}
