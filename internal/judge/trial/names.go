package trial

import (
	"fmt"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/nearest"
)

// Names returns the strategies to run, in the requested order or in that of the catalogue. It leaves out
// strategies that the requested fault does not affect, since their runs would prove nothing.
func (o *Crowd) Names(s *Storefront) (names []string, _ error) {
	all, err := asked(o, s)
	if err != nil {
		return nil, err
	}
	var spared []string
	why := ""
	for _, name := range all {
		if unused := unused(o, name); unused != "" {
			spared, why = append(spared, name), unused
		} else {
			names = append(names, name)
		}
	}
	if spared != nil {
		s.Unused = []string{strings.Join(spared, ", ") + ": " + why}
	}
	if names == nil {
		return nil, fmt.Errorf("the fault affects none of the strategies: %s", s.Unused[0])
	}
	return names, nil
}

// asked returns those of the requested strategies that can run on these servers.
func asked(o *Crowd, s *Storefront) ([]string, error) {
	if !slices.Contains(o.Strategies, "all") {
		var names []string
		for _, name := range o.Strategies {
			if o.Target == "" {
				name = lockstrategy.Resolve(name)
			} else if err := s.serves(name); err != nil {
				return nil, err
			}
			if why := s.Missing[name]; why != "" {
				return nil, fmt.Errorf("strategy %s: %s", name, why)
			}
			names = append(names, name)
		}
		return names, nil
	}
	if o.Target != "" {
		var names []string
		for _, served := range s.Served {
			if served.CanRun() {
				names = append(names, served.Name)
			} else {
				s.Missing[served.Name] = served.Reason
			}
		}
		if names != nil {
			return names, nil
		}
		return nil, fmt.Errorf("%s does not list its strategies at /strategies; name them with --strategy", o.Target)
	}
	return slices.DeleteFunc(lockstrategy.Names(), func(name string) bool { return s.Missing[name] != "" }), nil
}

// serves returns an error if the target publishes a list of strategies that does not contain this one.
func (s *Storefront) serves(name string) error {
	var names []string
	for _, served := range s.Served {
		if served.Name == lockstrategy.Resolve(name) {
			if !served.CanRun() {
				return fmt.Errorf("strategy %s is unavailable at the target: %s", name, served.Reason)
			}
			return nil
		}
		names = append(names, served.Name)
	}
	if names == nil {
		return nil
	}
	return nearest.Unknown("strategy", name, names, "GET /strategies at the target")
}
