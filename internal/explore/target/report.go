package target

// A CheckReport is a Check as `--app-check --json` prints it.
type CheckReport struct {
	Program string         `json:"program"`
	Servers string         `json:"servers"`
	OK      bool           `json:"ok"`                // a search can begin
	Why     string         `json:"why,omitempty"`     // why no search can begin
	Guesses []string       `json:"guesses,omitempty"` // keys of oversell.yaml that are still marked as guesses
	Buyers  []AloneReport  `json:"buyers"`
	Pollers []PollerReport `json:"pollers,omitempty"` // sent while no buyer was there
	Ignore  []string       `json:"ignore,omitempty"`  // entries of `ignore` for these pollers and the present ones

	Orders     int      `json:"orders,omitempty"`     // number of serial runs, each of some or all buyers
	Uncompared []string `json:"uncompared,omitempty"` // allowed differences from the serial runs
}

// An AloneReport is the run of one buyer alone.
type AloneReport struct {
	Buyer    int          `json:"buyer"`
	Request  string       `json:"request"`
	Answer   string       `json:"answer"` // "": the buyer got none
	Sold     bool         `json:"sold"`
	TookMS   float64      `json:"took_ms"`
	Commands []SeenReport `json:"commands"`
	Passed   []string     `json:"passed"`            // commands that no gate holds
	Ignored  []string     `json:"ignored,omitempty"` // commands that oversell.yaml ignores
	Hidden   []string     `json:"hidden,omitempty"`  // ignored commands that affect a step or a rule, each with the reason
	Varies   []string     `json:"varies,omitempty"`  // commands with values that differ between two runs
	Meets    int          `json:"meets,omitempty"`   // commands whose order relative to another buyer's may matter; 0: not known
	Why      string       `json:"why,omitempty"`
}

// A PollerReport is a command that the program sent by itself.
type PollerReport struct {
	Server  string  `json:"server"`
	Text    string  `json:"text"`
	Times   int     `json:"times"`
	EveryMS float64 `json:"every_ms"` // 0: it was sent once
}

// A SeenReport is a command that waited at a gate.
type SeenReport struct {
	Server string `json:"server"`
	Text   string `json:"text"`
	Result string `json:"result"`
}

// Report returns the check of that program for JSON.
func (c Check) Report(program string) CheckReport {
	r := CheckReport{Program: program, Servers: c.Servers, OK: true, Buyers: []AloneReport{}}
	if err := c.Err(); err != nil {
		r.OK, r.Why = false, err.Error()
	}
	for _, a := range c.Buyers {
		one := AloneReport{Buyer: a.Buyer, Request: a.Request, Answer: a.Answer, Sold: a.Sold, TookMS: float64(a.Took.Microseconds()) / 1000, Commands: []SeenReport{}, Passed: append([]string{}, a.Passed...), Ignored: a.Ignored, Hidden: a.Hidden, Varies: a.Varies, Meets: a.Meets, Why: a.Why}
		for _, s := range a.Commands {
			one.Commands = append(one.Commands, SeenReport(s))
		}
		r.Buyers = append(r.Buyers, one)
	}
	for _, p := range c.Pollers {
		r.Pollers = append(r.Pollers, PollerReport{p.Server, p.Text, p.Times, float64(p.Every.Microseconds()) / 1000})
	}
	r.Ignore, r.Orders, r.Uncompared = c.Ignore, c.Orders, c.Uncompared
	return r
}
