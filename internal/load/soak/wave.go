package soak

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// A Kind is a way in which buyers come.
type Kind struct {
	Name  string
	About string // in a line without a full stop

	Everybody bool                     // all clients take part, and not a number that is drawn
	Short     bool                     // fewer units than can be asked for: most are told that it is sold out
	Restock   bool                     // PUT in the middle, while buyers of that process are inside
	Kill      bool                     // kill -9 of a process in the middle
	Active    func(at float64) float64 // the share of the clients who ask, at a share of the wave; nil: all
}

// Kinds lists the kinds of waves. A draw takes each as often as any other.
func Kinds() []Kind {
	return []Kind{
		{Name: "steady", About: "so many clients, who ask again when they are answered"},
		{Name: "burst", About: "all clients at once for few units, and then sold-out answers", Everybody: true, Short: true},
		{Name: "ramp", About: "from one client to all of them and back", Active: func(at float64) float64 { return 1 - math.Abs(2*at-1) }},
		{Name: "idle", About: "nobody for three quarters of the wave, then one client, whose connections were idle", Active: func(at float64) float64 {
			if at < 0.75 {
				return none
			}
			return 0
		}},
		{Name: "restock", About: "a restock in the middle of the sale, at the process where all buyers are", Restock: true},
		{Name: "kill", About: "kill -9 of a shop process in the middle, which is started again", Everybody: true, Kill: true},
	}
}

// none of the clients ask; a share of 0 is one of them.
const none = -1

// asking is how many of the clients ask at a share of the wave.
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

// A Strategy may be drawn for a wave.
type Strategy struct {
	Name  string
	Kills bool // it promises to hold when a process is killed
}

// A Plan is what waves are drawn from. The same plan has the same waves.
type Plan struct {
	Seed       uint64
	Strategies []Strategy // at least one
	Clients    int        // at most
	Processes  int
	Kill       bool // there are waves that kill
}

// A Wave is one sale. Its stock is its own.
type Wave struct {
	Number   int    `json:"number"` // from 1
	Kind     string `json:"kind"`
	Strategy string `json:"strategy"`
	Clients  int    `json:"clients"` // at most at once
	Stock    int64  `json:"stock"`
	Process  int    `json:"process"` // that is killed, or restocked in the middle

	kind Kind
}

// plenty is more than is sold in a wave.
const plenty = 100_000_000

// Wave draws wave number n, from 1. It depends on nothing but the plan and n.
//
// The first is a steady one of all clients: afterwards the pools of connections are as
// large as they get, and what the processes use at rest can be compared with it.
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
	if k.Short || k.Restock && draw.IntN(2) == 0 { // then it is sold out when the new units come
		w.Stock = int64(1 + draw.IntN(2*w.Clients))
	}
	switch {
	case k.Restock:
		w.Process = draw.IntN(p.Processes)
	case k.Kill: // always the same, so that another lives from the first wave to the last
		w.Process = p.Processes - 1
	}
	return w
}

// allowed are the strategies for which waves of a kind are drawn.
func (p Plan) allowed(k Kind) []Strategy {
	if !k.Kill {
		return p.Strategies
	}
	return slices.DeleteFunc(slices.Clone(p.Strategies), func(s Strategy) bool { return !p.Kill || !s.Kills })
}

// check says what is wrong with a plan.
func (p Plan) check() error {
	switch {
	case len(p.Strategies) == 0:
		return errors.New("a soak needs a strategy")
	case p.Clients < 1 || p.Processes < 1:
		return fmt.Errorf("a soak needs clients and processes; there are %d and %d", p.Clients, p.Processes)
	}
	return nil
}
