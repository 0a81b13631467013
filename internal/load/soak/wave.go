package soak

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// A Kind is a pattern in which buyers arrive.
type Kind struct {
	Name  string
	About string // one line without a full stop

	Everybody bool                     // all clients take part, and not a random number
	Short     bool                     // few units, so most buyers hear "sold out"
	Restock   bool                     // restock during the sale, while buyers are inside
	Kill      bool                     // kill -9 of a process during the sale
	Active    func(at float64) float64 // share of active clients at a share of the wave; nil: all
}

// Kinds returns all kinds of waves, each with the same probability.
func Kinds() []Kind {
	return []Kind{
		{Name: "steady", About: "a number of clients, each of which asks again when it is answered"},
		{Name: "burst", About: "all clients at once for few units, and then sold-out answers", Everybody: true, Short: true},
		{Name: "ramp", About: "from one client to all of them and back", Active: func(at float64) float64 { return 1 - math.Abs(2*at-1) }},
		{Name: "idle", About: "no client for three quarters of the wave, then one client, whose connections were idle", Active: func(at float64) float64 {
			if at < 0.75 {
				return none
			}
			return 0
		}},
		{Name: "restock", About: "a restock in the middle of the sale, at the process where all buyers are", Restock: true},
		{Name: "kill", About: "kill -9 of a shop process in the middle, which is started again", Everybody: true, Kill: true},
	}
}

// none is a share without any client. A share of 0 means one client.
const none = -1

// asking returns the number of active clients at a share of the wave.
func (w Wave) asking(at float64) int {
	if w.kind.Active == nil {
		return w.Clients
	}
	share := w.kind.Active(at)
	if share == none {
		return 0
	}
	return max(1, int(math.Round(share*float64(w.Clients))))
}

// A Strategy is a strategy that a wave may use.
type Strategy struct {
	Name  string
	Kills bool // it promises to hold after a killed process
}

// A Plan determines the waves. Equal plans have equal waves.
type Plan struct {
	Seed       uint64
	Strategies []Strategy // at least one
	Clients    int        // at most
	Processes  int
	Kill       bool // includes waves that kill
}

// A Wave is one sale with its own stock.
type Wave struct {
	Number   int    `json:"number"` // from 1
	Kind     string `json:"kind"`
	Strategy string `json:"strategy"`
	Clients  int    `json:"clients"` // maximum number at once
	Stock    int64  `json:"stock"`
	Process  int    `json:"process"` // process that is killed or restocked during the sale

	kind Kind
}

// plenty is more than a wave can sell.
const plenty = 100_000_000

// Wave returns wave number n, from 1. It depends only on the plan and n.
//
// The first wave is steady and uses all clients. It fills the connection pools, so that later idle
// samples can be compared with it.
func (p Plan) Wave(n int) Wave {
	draw := rand.New(rand.NewPCG(p.Seed, uint64(n)))
	kinds := slices.DeleteFunc(Kinds(), func(k Kind) bool { return k.Kill && len(p.allowed(k)) == 0 })
	k := kinds[draw.IntN(len(kinds))]
	if n == 1 {
		k = Kinds()[0]
		k.Everybody = true
	}
	strategies := p.allowed(k)
	w := Wave{
		Number: n, Kind: k.Name, kind: k, Strategy: strategies[draw.IntN(len(strategies))].Name,
		Clients: 1 + draw.IntN(p.Clients), Stock: plenty,
	}
	if k.Everybody {
		w.Clients = p.Clients
	}
	if k.Short || k.Restock && draw.IntN(2) == 0 { // the product is sold out when the new units arrive
		w.Stock = int64(1 + draw.IntN(2*w.Clients))
	}
	switch {
	case k.Restock:
		w.Process = draw.IntN(p.Processes)
	case k.Kill: // always the same process, so that another one lives through all waves
		w.Process = p.Processes - 1
	}
	return w
}

// allowed returns the strategies for waves of a kind.
func (p Plan) allowed(k Kind) []Strategy {
	if !k.Kill {
		return p.Strategies
	}
	return slices.DeleteFunc(slices.Clone(p.Strategies), func(s Strategy) bool { return !p.Kill || !s.Kills })
}

// check returns an error if the plan is invalid.
func (p Plan) check() error {
	switch {
	case len(p.Strategies) == 0:
		return errors.New("a soak needs a strategy")
	case p.Clients < 1 || p.Processes < 1:
		return fmt.Errorf("a soak needs clients and processes; there are %d and %d", p.Clients, p.Processes)
	}
	return nil
}
