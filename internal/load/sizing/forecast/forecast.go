// Package forecast predicts the sales per second of the catalogue's strategies from measured points,
// and reports them.
//
//	points -> sizing.Calibrate -> sizing.Predict for each strategy -> Report
package forecast

import (
	"fmt"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/load/sizing"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// Of predicts the sales per second of strategies in a shop. In shop and nodeRTT, a time of -1 means
// unknown. 0 writers means one for each process. points is a file of measurements; "" means the
// reference.
func Of(shop sizing.Shop, nodeRTT float64, strategies []string, points string) (*Report, error) {
	measured, err := sizing.Reference()
	if points != "" {
		measured, err = sizing.ReadFile(points)
	}
	if err != nil {
		return nil, fmt.Errorf("--points: %w", err)
	}
	calibration, err := sizing.Calibrate(measured, PathOf)
	if err != nil {
		return nil, fmt.Errorf("--points %s: %w", points, err)
	}
	r := &Report{Shop: complete(shop, nodeRTT, calibration), From: measured.From(), Calibration: calibration.Machine}
	r.assume()
	var unknown []string
	for _, name := range strategies {
		if why := lacked(name, shop.Nodes); why != "" {
			r.LeftOut = append(r.LeftOut, name+": "+why)
			continue
		}
		costs, known := calibration.Strategies[name]
		if !known {
			r.LeftOut = append(r.LeftOut, name+": not measured there")
			unknown = append(unknown, name)
			continue
		}
		path, _ := PathOf(name)
		r.Results = append(r.Results, Result{name, sizing.Predict(path, costs, calibration.Machine, r.Shop)})
	}
	switch {
	case len(r.Results) > 0:
	case len(unknown) > 0:
		return nil, fmt.Errorf("no point of %s in the file; create them with: shop size --calibrate FILE --strategy %s", strings.Join(unknown, ", "), strings.Join(unknown, ","))
	default:
		return nil, fmt.Errorf("no strategy can run on --nodes %d: %s", shop.Nodes, strings.Join(r.LeftOut, "; "))
	}
	slices.SortStableFunc(r.Results, func(a, b Result) int { return int(b.PerSecond - a.PerSecond) })
	return r, nil
}

// lacked says why a strategy cannot run on several nodes; "" if it can.
func lacked(name string, nodes int) string {
	e, ok := lockstrategy.ByName(name)
	if !ok || nodes == 1 {
		return ""
	}
	return e.LackedOn(dialect.Galera)
}

// complete fills in the unknown values of a shop.
func complete(s sizing.Shop, nodeRTT float64, c sizing.Calibration) sizing.Shop {
	if s.CommitMS < 0 {
		s.CommitMS = c.CommitMS
	}
	if s.LockRTTMS < 0 {
		s.LockRTTMS = s.RTTMS
	}
	if s.Writers == 0 {
		s.Writers = min(s.Nodes, s.Processes)
	}
	if s.Nodes > 1 { // all nodes certify a COMMIT, which takes one round trip
		if nodeRTT < 0 {
			nodeRTT = s.RTTMS
		}
		s.CommitMS += nodeRTT
		s.KeepsRow = true
	}
	s.LockCores = 1
	s.BuyersCPU = c.BuyersCPU
	return s
}

// PathOf returns the path of a strategy of the catalogue. The bool is false if it is unknown.
func PathOf(strategy string) (sizing.Path, bool) {
	e, ok := lockstrategy.ByName(strategy)
	return e.Path, ok
}
