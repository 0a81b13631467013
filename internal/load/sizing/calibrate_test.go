package sizing

import (
	"math"
	"testing"
)

// TestCalibrate: points that were computed from the laws return the same constants.
func TestCalibrate(t *testing.T) {
	t.Parallel()
	process := Path{SQL: 5, RowSQL: 2, Keeps: Process, TurnSQL: 5, TurnCommits: 1}
	row, key := Path{SQL: 5, RowSQL: 3}, Path{SQL: 5, Lock: 2, RowSQL: 2, Keeps: All, TurnSQL: 5, TurnLock: 2, TurnCommits: 1, Nodes: ByKey}
	path := func(name string) (Path, bool) {
		p, ok := map[string]Path{"process": process, "row": row, "key": key}[name]
		return p, ok
	}
	point := func(name string, processes, products int, perSecond, cpu float64) Point {
		return Point{
			Strategy: name, PerSecond: perSecond, CPU: CPU{Database: cpu}, Servers: Servers{StatementMS: 0.1, CommitMS: 0.3},
			Setting: Setting{Nodes: 1, Writers: 1, Processes: processes, Products: products, Buyers: 32},
		}
	}
	m := Measured{Cores: 2, Points: []Point{
		point("process", 1, AloneProducts, 1000, 1), point("process", 1, SpreadProducts, 3800, 0.5),
		point("row", 1, AloneProducts, 1250, 1), point("row", 1, SpreadProducts, 3800, 0.5),
		point("row", CrowdedProcesses, AloneProducts, 1000, 1), point("row", CrowdedProcesses, SpreadProducts, 2000, 1.2),
		point("row", 4, SpreadProducts, 1, 1), // not read
		point("key", 1, AloneProducts, 500, 1), point("key", 1, SpreadProducts, 3800, 0.5), point("key", CrowdedProcesses, AloneProducts, 250, 1),
		point("unfinished", 1, AloneProducts, 1000, 1),
	}}
	c, err := Calibrate(m, path)
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]struct{ got, want float64 }{
		"a round trip of a turn":             {c.StatementMS, 0.2},
		"the row to the next":                {c.WakeMS, 0.2},
		"COMMIT":                             {c.CommitMS, 0.3},
		"usable":                             {c.Usable, 0.95},
		"further processes' processor time":  {c.Crowding, 0.2},
		"further processes' time of a turn":  {c.Slower, 0.25 / (CrowdedProcesses - 1)},
		"the same at a lock":                 {c.SlowerLock, 1.0 / (CrowdedProcesses - 1)},
		"a turn":                             {c.Strategies["row"].TurnMS, 0.8},
		"strategies with both of their ends": {float64(len(c.Strategies)), 3},
	} {
		if math.Abs(v.got-v.want) > 1e-9 {
			t.Errorf("%s: %g, want %g", name, v.got, v.want)
		}
	}
	if _, err := Calibrate(Measured{Cores: 2, Points: m.Points[len(m.Points)-1:]}, path); err == nil {
		t.Error("points of which no strategy has both ends were taken")
	}
}

// TestRoundTrips: it returns the additional time of a delay with idle servers.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	at := func(delay float64, products int, ms float64) Point {
		return Point{Setting: Setting{DelayMS: delay, Processes: 1, Products: products}, Servers: Servers{StatementMS: ms, RedisMS: ms / 2}}
	}
	points := []Point{at(0, 1, 0.1), at(5, 1, 5.3), at(5, 100, 9), at(1, 1, 1.2)}
	if got := RoundTrips(points, 5); math.Abs(got.StatementMS-5.2) > 1e-9 || math.Abs(got.RedisMS-2.6) > 1e-9 {
		t.Errorf("%+v", got)
	}
	if got := RoundTrips(points, 0); got != (Servers{}) {
		t.Errorf("without a delay: %+v", got)
	}
}
