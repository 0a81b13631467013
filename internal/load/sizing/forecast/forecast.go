// Package forecast predicts from measured points what the catalogue's strategies sell in a
// shop, and reports it.
//
//	points -> sizing.Calibrate -> sizing.Predict, a strategy at a time -> Report
package forecast

import (
	"fmt"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/load/sizing"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// Of predicts what strategies sell in a shop. In shop and nodeRTT, -1 stands for an unknown
// time, and 0 writers for as many as there are processes. points is a file of measurements; "" is
// the reference.
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
		return nil, fmt.Errorf("no point of %s in the file; shop size --calibrate FILE --strategy %s makes them", strings.Join(unknown, ", "), strings.Join(unknown, ","))
	default:
		return nil, fmt.Errorf("nothing of this can run on --nodes %d: %s", shop.Nodes, strings.Join(r.LeftOut, "; "))
	}
	slices.SortStableFunc(r.Results, func(a, b Result) int { return int(b.PerSecond - a.PerSecond) })
	return r, nil
}

// lacked says why a strategy cannot run on so many nodes; "" where it can.
func lacked(name string, nodes int) string {
	e, ok := lockstrategy.ByName(name)
	if !ok || nodes == 1 {
		return ""
	}
	return e.LackedOn(dialect.Galera)
}

// complete fills in what is unknown of a shop.
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
	if s.Nodes > 1 { // a COMMIT is certified by all: one round trip among them
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

// PathOf returns what a sale of a strategy of the catalogue does.
func PathOf(strategy string) (sizing.Path, bool) {
	e, ok := lockstrategy.ByName(strategy)
	return e.Path, ok
}
