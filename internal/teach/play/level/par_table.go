// Code generated from level.All by make generate; DO NOT EDIT.

package level

// pars are by level what the explorer has computed.
func pars() map[string]Par {
	return map[string]Par{
		"sell-twice":           {Way: "1 1 2 2 2 2 2 1 1 1", Switches: 2, Complete: true},
		"lose-an-update":       {Way: "1 1 2 2 2 2 2 1 1 1", Switches: 2, Complete: true},
		"three-buyers":         {Way: "1 1 1 1 1 2 2 3 3 3 3 3 2 2 2", Switches: 3, Complete: true},
		"begin-and-commit":     {Orders: 666, Complete: true},
		"unlock-too-early":     {Way: "1 1 1 1 1 2 2 1 2 2 2 2", Switches: 3, Complete: true},
		"second-process":       {Way: "1 1 2 2 2 2 2 1 1 1", Switches: 2, Complete: true},
		"one-process":          {Orders: 12, Complete: true},
		"dead-holder":          {Way: "1 2 crash1", Switches: 1, Complete: true},
		"gap-before-expiry":    {Way: "1 2 crash1", Switches: 1, Complete: true},
		"expiry-in-one":        {Orders: 150, Complete: true},
		"slow-section":         {Way: "1 1 1 expire 2 2 2 2 2 2 2 1 1 1 1", Switches: 2, Complete: true},
		"free-anothers":        {Way: "1 1 1 1 1 1 expire 2 1 2 2", Switches: 3, Complete: true},
		"check-then-delete":    {Way: "1 1 1 1 1 1 1 expire 2 1 2 2", Switches: 3, Complete: true},
		"expiry-in-the-value":  {Way: "1 1 1 2 expire 2 2 2 2 2 2 2 2 1 1 1 1", Switches: 2, Complete: true},
		"the-best-of-one-node": {Way: "1 1 1 expire 2 2 2 2 2 2 2 1 1 1 1", Switches: 2, Complete: true},
		"redis-forgets":        {Way: "1 1 1 forget 2 2 2 2 2 2 2 1 1 1 1", Switches: 2, Complete: true},
		"dead-watchdog":        {Orders: 542, Complete: true},
		"a-unit-leaks":         {Way: "1 1 1 1 2 2 2 crash1", Switches: 1, Complete: true},
		"the-counter-is-gone":  {Way: "1 1 1 1 1 forget 2 2 2 2 2 2 2 2 1 1 1", Switches: 2, Complete: true},
		"one-node-restarts":    {Way: "1a 1b forget-a 2a 2b 2c 2 1c 1 1 1 1 1 1a 1b 1c 2 2 2 2 2a 2b 2c", Switches: 3, Complete: false},
		"a-late-holder":        {Orders: 141520, Complete: true},
		"version-column":       {Orders: 3920, Complete: true},
		"lock-the-row":         {Orders: 146, Complete: true},
		"one-statement":        {Orders: 692, Complete: true},
	}
}
