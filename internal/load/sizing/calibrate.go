package sizing

import (
	"fmt"
	"slices"

	"github.com/oversell/oversell/internal/load/quantile"
)

// A strategy is calibrated by two settings with one process and no delay.
const (
	AloneProducts  = 1   // shows how long the sales of one product wait for each other
	SpreadProducts = 100 // shows the processor time of a sale

	// CrowdedProcesses, on the same settings, show how processes slow each other down.
	CrowdedProcesses = 8
)

// A Calibration has the constants of predictions.
type Calibration struct {
	Machine
	Strategies map[string]Costs `json:"strategies"`
}

// Calibrate reads the constants from the points with one process, one node and no delay, with 1 and
// 100 products. The cost of further processes comes from the points with CrowdedProcesses. path
// returns the path of a strategy.
func Calibrate(m Measured, path func(strategy string) (Path, bool)) (Calibration, error) {
	points, cores := m.Points, m.Cores
	c := Calibration{Machine: Machine{Cores: cores}, Strategies: map[string]Costs{}}
	var usable, crowding, slower, told, commits, buyers []float64
	base := func(p Point) bool {
		return p.DelayMS == 0 && p.Records == 0 && p.Nodes == 1 && p.Database == points[0].Database
	}
	for _, p := range points {
		if !base(p) || p.Processes != 1 || p.PerSecond <= 0 {
			continue
		}
		costs := c.Strategies[p.Strategy]
		switch p.Products {
		case AloneProducts:
			costs.TurnMS, costs.Alone = 1000/p.PerSecond, p.CPU
		case SpreadProducts:
			costs.Spread = p.CPU
			buyers = append(buyers, p.CPU.Buyers)
			usable = append(usable, p.CPU.Total()*p.PerSecond/1000/max(cores-p.Others, 0.1))
		}
		c.Strategies[p.Strategy], c.Buyers = costs, p.Buyers
		commits = append(commits, p.Servers.CommitMS)
	}
	for name, costs := range c.Strategies {
		if costs.TurnMS == 0 || costs.Spread.Total() == 0 {
			delete(c.Strategies, name)
		}
	}
	for _, p := range points {
		costs, ok := c.Strategies[p.Strategy]
		if way, _ := path(p.Strategy); !ok || !base(p) || p.Processes != CrowdedProcesses || p.PerSecond == 0 || way.Rounds > 0 || way.Batch > 0 || way.Nodes == AllAtOnce {
			continue
		} else if p.Products == SpreadProducts {
			crowding = append(crowding, (p.CPU.Total()/costs.Spread.Total()-1)/float64(p.Processes-1))
		} else if more := (1000/p.PerSecond/costs.TurnMS - 1) / float64(p.Processes-1); p.Products == AloneProducts && way.Keeps == Nobody {
			slower = append(slower, more)
		} else if p.Products == AloneProducts && way.Keeps == All && way.Nodes != InSession {
			told = append(told, more)
		}
	}
	if len(c.Strategies) == 0 {
		return c, fmt.Errorf("nothing to calibrate by: a strategy needs a point of one and one of %d products, of one process without a delay", SpreadProducts)
	}
	c.Usable, c.Crowding, c.CommitMS = middle(usable), max(0, middle(crowding)), middle(commits)
	c.Slower, c.SlowerLock, c.BuyersCPU = max(0, middle(slower)), max(0, middle(told)), middle(buyers)
	var statement, wake []float64
	for name, costs := range c.Strategies {
		if p, ok := path(name); ok && p.Keeps == Process && p.Batch == 0 && p.TurnCommits > 0 {
			statement = append(statement, costs.TurnMS/float64(p.TurnSQL))
		}
	}
	c.StatementMS = middle(statement)
	for name, costs := range c.Strategies {
		if p, ok := path(name); ok && p.Keeps == Nobody && p.Rounds == 0 {
			wake = append(wake, costs.TurnMS-float64(p.RowSQL)*c.StatementMS)
		}
	}
	c.WakeMS = max(0, middle(wake))
	return c, nil
}

// Calibrates reports whether Calibrate uses the point.
func Calibrates(p Point) bool {
	return (p.Processes == 1 || p.Processes == CrowdedProcesses) && p.DelayMS == 0 && p.Records == 0 && p.Nodes == 1 && (p.Products == AloneProducts || p.Products == SpreadProducts)
}

// middle returns the median, or 0 without values.
func middle(values []float64) float64 {
	slices.Sort(values)
	return quantile.Of(values, 0.5)
}

// ShopOf returns the shop of a measured point: everything on one machine, with the measured delay
// and the buyers' processor time.
func (c Calibration) ShopOf(p Point, rtt Servers) Shop {
	s := Shop{
		Setting: p.Setting, RTTMS: rtt.StatementMS, LockRTTMS: rtt.RedisMS, CommitMS: c.CommitMS,
		Conns: 64, DatabaseCores: max(c.Cores-p.Others, 0.1), LockCores: 1, OneMachine: true, BuyersCPU: p.CPU.Buyers,
	}
	if p.Nodes > 1 { // they certify at COMMIT and keep the row locked until then
		s.CommitMS, s.KeepsRow = p.Servers.CommitMS, true
	}
	return s
}

// RoundTrips returns the additional answer times of the servers with a delay. It is the median of
// the points with one product, where the processors were not full.
func RoundTrips(points []Point, delayMS float64) Servers {
	if delayMS == 0 {
		return Servers{}
	}
	var sql, locks, sql0, locks0 []float64
	for _, p := range points {
		switch {
		case p.DelayMS == 0 && p.Processes == 1:
			sql0, locks0 = append(sql0, p.Servers.StatementMS), append(locks0, p.Servers.RedisMS)
		case p.DelayMS == delayMS && p.Products == AloneProducts:
			sql, locks = append(sql, p.Servers.StatementMS), append(locks, p.Servers.RedisMS)
		}
	}
	return Servers{StatementMS: middle(sql) - middle(sql0), RedisMS: middle(locks) - middle(locks0)}
}
