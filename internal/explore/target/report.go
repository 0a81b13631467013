package target

// A CheckReport is a Check as `--app-check --json` prints it.
type CheckReport struct {
	Program string   `json:"program"`
	OK      bool     `json:"ok"`                // a search can begin
	Why     string   `json:"why,omitempty"`     // why no search can begin
	Guesses []string `json:"guesses,omitempty"` // keys of oversell.yaml that are still marked as guesses
	Check
}

// Report returns the check of that program for JSON.
func (c Check) Report(program string) CheckReport {
	r := CheckReport{Program: program, OK: true, Check: c}
	if err := c.Err(); err != nil {
		r.OK, r.Why = false, err.Error()
	}
	r.Buyers = append([]Alone{}, c.Buyers...) // an empty list, not null
	return r
}
