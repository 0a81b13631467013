package target

// A CheckReport is a Check in the form that `--app-check --json` prints.
type CheckReport struct {
	Program string   `json:"program"`
	OK      bool     `json:"ok"`                // the program can be searched
	Why     string   `json:"why,omitempty"`     // why the program cannot be searched
	Guesses []string `json:"guesses,omitempty"` // keys of oversell.yaml that `shop init` has guessed and the user has not confirmed
	Check
}

// Report returns the check of the given program in the form for JSON.
func (c Check) Report(program string) CheckReport {
	r := CheckReport{Program: program, OK: true, Check: c}
	if err := c.Err(); err != nil {
		r.OK, r.Why = false, err.Error()
	}
	r.Buyers = append([]Alone{}, c.Buyers...) // an empty list, not null
	return r
}
