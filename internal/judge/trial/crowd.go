// Package trial tests a strategy: it sends a rush (a burst of buyers) to our shops or to a running service, the
// target. It may inject a fault, and compares the result with the promise. A crowd is the burst for one strategy.
//
//	Crowd -> Open -> Storefront -> Send -> rush.Result
//
// shop rush, shop verify and the live page share this package.
package trial

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/nearest"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/web"
)

// MaxBuyers is the maximum of --buyers. One machine has enough loopback ports and open files for this number.
const MaxBuyers = 10_000

// A Crowd describes a rush: its strategies, its buyers, and where they buy.
type Crowd struct {
	Strategies []string // names, or "all"
	Product    string
	Stock      int64 // units on sale at the start of each strategy
	Buyers     int
	Processes  int
	Target     string // address of a running service; "" means our own shops
	Duration   time.Duration
	Restocks   int
	Units      []int64           // units of the orders; the buyers take these numbers in turn
	Second     string            // another product, which gets half of Stock
	Expect     bool              // send another crowd if a violation that is promised does not show
	Fault      promise.Condition // fault that is injected into each crowd; may be ""
	For        time.Duration     // duration of a long rush, which sends further crowds until then; see Waves
	Every      time.Duration     // interval of the fault in a long rush; 0 means that each crowd gets the fault
	Shops      web.Config
	Send       rush.Generator // sends the requests; nil: this process does
}

// Report returns a report of this rush that has no results yet.
func (o *Crowd) Report(bed *Storefront) rush.Report {
	r := rush.Report{
		Engine: bed.Engine, Server: bed.Server, Target: o.Target, Stock: o.Stock, Buyers: o.Buyers, Processes: o.Processes, Second: o.Second, Restocks: o.Restocks,
	}
	if !slices.Equal(o.Units, []int64{1}) {
		r.Units = o.Units
	}
	for _, name := range slices.Sorted(maps.Keys(bed.Missing)) {
		if slices.Contains(o.Strategies, "all") {
			r.LeftOut = append(r.LeftOut, name+": "+bed.Missing[name])
		}
	}
	r.LeftOut = append(r.LeftOut, bed.Unused...)
	return r
}

// A FieldError is an error in one field. Name is the field's flag.
type FieldError struct{ Name, Says string }

func (e *FieldError) Error() string { return "--" + e.Name + " " + e.Says }

func wrong(name, format string, args ...any) error {
	return &FieldError{name, fmt.Sprintf(format, args...)}
}

// ServiceURL returns the address of a service without a slash at its end. Its error names the flag.
func ServiceURL(flag, text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return "", wrong(flag, "must be a URL such as http://host:port (got %q)", text)
	}
	return strings.TrimSuffix(text, "/"), nil
}

// CheckNames returns an error if a strategy is not in the catalogue.
func (o *Crowd) CheckNames() error {
	for _, name := range o.Strategies {
		if _, ok := lockstrategy.ByName(lockstrategy.Resolve(name)); !ok && name != "all" {
			return nearest.Unknown("strategy", name, lockstrategy.Names(), "shop strategies")
		}
	}
	return nil
}

// Check checks the fields, except those that can only be checked with open servers.
func (o *Crowd) Check() error {
	switch {
	case len(o.Strategies) == 0 || slices.Contains(o.Strategies, ""):
		return wrong("strategy", "needs names, or all (got an empty name)")
	case slices.Contains(o.Strategies, "all") && len(o.Strategies) > 1:
		return wrong("strategy", "needs names, or all alone (got %s)", strings.Join(o.Strategies, ","))
	case o.Stock < 1 || o.Stock > product.MaxStock:
		return wrong("stock", "must be between 1 and %d (got %d)", product.MaxStock, o.Stock)
	case o.Buyers < 1 || o.Buyers > MaxBuyers:
		return wrong("buyers", "must be between 1 and %d (got %d)", MaxBuyers, o.Buyers)
	case o.Processes < 1 || o.Processes > 64:
		return wrong("processes", "must be between 1 and 64 (got %d)", o.Processes)
	case o.Restocks < 0 || o.Restocks > 100:
		return wrong("restocks", "must be between 0 and 100 (got %d)", o.Restocks)
	case o.Duration < 0 || o.Duration > 10*time.Minute:
		return wrong("duration", "must be at most 10m (got %s)", o.Duration)
	}
	seen := map[string]bool{}
	for _, name := range o.Strategies {
		if seen[lockstrategy.Resolve(name)] {
			return wrong("strategy", "names %s twice", name)
		}
		seen[lockstrategy.Resolve(name)] = true
	}
	return o.checkOrders()
}

func (o *Crowd) checkOrders() error {
	if err := product.CheckName(o.Product); err != nil {
		return fmt.Errorf("--product %w", err)
	}
	switch {
	case len(o.Units) == 0:
		return errors.New("--units needs numbers, for example 1 or 1,2,3")
	case o.Duration > 0 && (o.Second != "" || len(o.Units) > 1 || o.Units[0] > 1):
		return errors.New("--duration cannot be combined with --units and --second-product: each order is for one unit of one product")
	case o.For > 0 && (o.Second != "" || len(o.Units) > 1 || o.Units[0] > 1):
		return errors.New("--for cannot be combined with --units and --second-product: each order is for one unit of one product")
	case o.Second == o.Product:
		return fmt.Errorf("--second-product must differ from --product (got %q)", o.Second)
	case o.Second != "" && o.Stock < 2:
		return fmt.Errorf("--stock must be 2 or more with --second-product (got %d): two products share it", o.Stock)
	}
	if err := checkUnits(o); err != nil || o.Second == "" {
		return err
	}
	if err := product.CheckName(o.Second); err != nil {
		return fmt.Errorf("--second-product %w", err)
	}
	return nil
}

// checkUnits refuses orders for more units than the stock: they are never sold, so they prove nothing.
func checkUnits(o *Crowd) error {
	for _, units := range o.Units {
		switch {
		case units < 1 || units > purchase.MaxAmount:
			return fmt.Errorf("--units must be between 1 and %d (got %d)", purchase.MaxAmount, units)
		case o.Second == "" && units > o.Stock:
			return fmt.Errorf("--units must be at most --stock, %d (got %d)", o.Stock, units)
		case o.Second != "" && units > o.Stock/2:
			return fmt.Errorf("--units must be at most half of --stock, %d, with --second-product (got %d)", o.Stock/2, units)
		}
	}
	return nil
}

// promised returns the promise for this rush: the target's own promise, or else the catalogue's. A strategy
// that is not in the catalogue is expected to hold. The result "" means that a run may break or not.
func (o *Crowd) promised(s *Storefront, name string) verdict.Verdict {
	entry, ok := lockstrategy.ByName(lockstrategy.Resolve(name))
	for _, served := range s.Served {
		promised := served.Promise[string(promise.Rush)]
		if served.Name == lockstrategy.Resolve(name) && (promised != "" || ok && len(served.Promise) > 0) {
			return promised // "" means that the service, another shop of ours, promises nothing on its database
		}
	}
	if !ok {
		return verdict.Holds
	}
	return entry.Promised(o.condition(), s.Database)
}

func (o *Crowd) condition() promise.Condition {
	switch {
	case o.Fault != "":
		return o.Fault
	case o.Processes > 1:
		return promise.TwoProcesses
	case slices.ContainsFunc(o.Units, func(n int64) bool { return n != o.Units[0] }):
		return promise.Units
	case o.Second != "":
		return promise.TwoProducts
	}
	return promise.Rush
}

// whyNoPromise says why the catalogue has no promise for this rush. It returns "" if there is a promise, or if
// the strategy is unknown.
func (o *Crowd) whyNoPromise(s *Storefront, name string) string {
	entry, ok := lockstrategy.ByName(lockstrategy.Resolve(name))
	if !ok || o.Target != "" {
		return ""
	}
	return entry.WhyNoPromise(o.condition(), s.Database)
}

// TargetPromise returns the promise for a strategy of a target under a fault. The target's own promise has
// priority. The catalogue's promises under faults assume two processes, so they do not apply. But a catalogue
// strategy that holds in a rush must also hold under each fault here, since the fault is injected into a rush.
// One that breaks in a rush has no promise under a fault. A strategy without any promise is expected to hold.
func (o *Crowd) TargetPromise(s *Storefront, name string, f promise.Condition) verdict.Verdict {
	if _, ours := lockstrategy.ByName(lockstrategy.Resolve(name)); !ours {
		for _, served := range s.Served {
			if promised := served.Promise[string(f)]; served.Name == name && promised != "" {
				return promised
			}
		}
	}
	promised := o.promised(s, name)
	if f != promise.Rush && promised != verdict.Holds {
		return ""
	}
	return promised
}
