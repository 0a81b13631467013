package sizing

import (
	"strings"
	"testing"
)

// FuzzMeasured: a file of points is rejected, or a prediction from it does not panic.
func FuzzMeasured(f *testing.F) {
	f.Add(`{"cores":2,"points":[{"strategy":"a","processes":1,"products":1,"nodes":1,"per_second":100},{"strategy":"a","processes":1,"products":100,"nodes":1,"per_second":200,"cpu":{"shop":1}}]}`)
	f.Add(`{"cores":1e308,"points":[{}]}`)
	f.Add(`{"cores":-1,"points":[]}`)
	f.Add(`null`)
	f.Add(``)
	f.Add("when,\ncores,2\nserver,\nprovisional,\nstrategy,database\n")
	f.Fuzz(func(t *testing.T, text string) {
		name := "FILE"
		if strings.HasPrefix(text, "when") {
			name = "FILE.csv"
		}
		m, err := read(name, []byte(text))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than a line: %q", err)
			}
			return
		}
		way := Path{SQL: 3, Lock: 2, RowSQL: 2, TurnSQL: 2, TurnCommits: 1}
		c, err := Calibrate(m, func(string) (Path, bool) { return way, true })
		if err != nil {
			return
		}
		for _, p := range m.Points[:min(len(m.Points), 8)] {
			if costs, ok := c.Strategies[p.Strategy]; ok {
				Predict(way, costs, c.Machine, c.ShopOf(p, RoundTrips(m.Points, p.DelayMS)))
			}
		}
		_ = m.From()
	})
}
