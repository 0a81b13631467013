package sizing

import (
	"fmt"
	"slices"

	"github.com/oversell/oversell/internal/load/quantile"
)

// The two settings by which a strategy is calibrated: one process, no delay, and
const (
	AloneProducts  = 1   // product: what its sales wait for each other
	SpreadProducts = 100 // products: what processor time a sale takes

	// CrowdedProcesses on the same settings show what further processes cost each other.
	CrowdedProcesses = 8
)

// A Calibration is what predictions rest on.
type Calibration struct {
	Machine
	Strategies map[string]Costs `json:"strategies"`
}

// Calibrate reads the constants from the points of one process and one node, without a
// delay, of one and of a hundred products; and what further processes cost, from those of
// four that are there. path finds the way of a strategy's sale.
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

// Calibrates: the prediction of this very point rests on it.
func Calibrates(p Point) bool {
	return (p.Processes == 1 || p.Processes == CrowdedProcesses) && p.DelayMS == 0 && p.Records == 0 && p.Nodes == 1 && (p.Products == AloneProducts || p.Products == SpreadProducts)
}

// middle is the median; 0 of none.
func middle(values []float64) float64 {
	slices.Sort(values)
	return quantile.Of(values, 0.5)
}

// ShopOf is the shop that a point was measured of: all on one machine, with the delay that
// was measured, and the buyers' processor time, which is not the shop's.
func (c Calibration) ShopOf(p Point, rtt Servers) Shop {
	s := Shop{
		Setting: p.Setting, RTTMS: rtt.StatementMS, LockRTTMS: rtt.RedisMS, CommitMS: c.CommitMS,
		Conns: 64, DatabaseCores: max(c.Cores-p.Others, 0.1), LockCores: 1, OneMachine: true, BuyersCPU: p.CPU.Buyers,
	}
	if p.Nodes > 1 { // which certify at COMMIT, and keep the row meanwhile
		s.CommitMS, s.KeepsRow = p.Servers.CommitMS, true
	}
	return s
}

// RoundTrips is by how much longer the servers took to answer behind each delay than
// without: the median of what was asked beside the buyers of one product, when the
// processors had time.
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
