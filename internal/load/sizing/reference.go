package sizing

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// A Measured file has points of one machine. shop size --measure and --calibrate write it.
type Measured struct {
	When   string  `json:"when"`  // the day, UTC
	Cores  float64 `json:"cores"` // of the machine, shared by shops, servers and buyers
	Server string  `json:"server"`

	// Provisional says why the points are no more than a first look; "" where they are final.
	Provisional string `json:"provisional,omitempty"`

	Points []Point `json:"points"`
}

//go:embed reference.csv
var reference []byte

// Reference is what was measured for docs/reference/throughput.md.
func Reference() (Measured, error) { return read("reference.csv", reference) }

// ReadFile reads what shop size --measure or --calibrate has written.
func ReadFile(path string) (Measured, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Measured{}, err
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
		return m, fmt.Errorf("%s is no file of shop size --calibrate: %w", name, err)
	}
	if m.Cores <= 0 || len(m.Points) == 0 {
		return m, fmt.Errorf("%s has no points; shop size --calibrate %s makes them", name, name)
	}
	return m, nil
}

// File is the points as a file of that name has them: CSV if it ends with .csv, else JSON.
// ReadFile reads both.
func (m Measured) File(name string) ([]byte, error) {
	if isCSV(name) {
		return m.writeCSV()
	}
	text, err := json.MarshalIndent(m, "", "\t")
	return append(text, '\n'), err
}

func isCSV(name string) bool { return strings.HasSuffix(name, ".csv") }

// Others is how many processors other programs used beside the points, on average.
func (m Measured) Others() (mean float64) {
	for _, p := range m.Points {
		mean += p.Others / float64(len(m.Points))
	}
	return mean
}

// From says whose points they are, for people.
func (m Measured) From() string {
	text := fmt.Sprintf("measured on %s with %s, %g processors for everything", m.When, m.Server, m.Cores)
	if m.Provisional != "" {
		text += "; provisional: " + m.Provisional
	}
	return text
}
