package trial

import (
	"fmt"
	"iter"
	"time"

	"github.com/oversell/oversell/internal/plural"
)

// A Wave is one strategy's crowd: its burst of buyers in one round of the rush.
type Wave struct {
	Crowd
	Number   int // position in the rush, from 1
	Strategy string
}

func (w Wave) String() string {
	return fmt.Sprintf("wave %d (%s)", w.Number, plural.Count(w.Buyers, "buyer"))
}

// shares are the fractions of the buyers and the stock in the rounds of a long rush. A round is one crowd of
// each strategy. The first round has all buyers, so that the shops open all their connections.
var shares = []float64{1, 0.25, 0.5, 0.75}

// Waves yields the crowds of a rush: one of each strategy. If o.For is set, it yields further rounds with
// other numbers of buyers until that time is over, at least two rounds in total. If o.Every is set, only some
// rounds have the fault: the second, and then the first one after each interval. A round with the fault has all
// buyers.
func (o *Crowd) Waves(names []string) iter.Seq[Wave] {
	least := 1 // minimum number of rounds
	if o.For > 0 {
		least = 2 // on a slow machine, one may last for all of o.For; with a fault, the second is the first that has it
	}
	return func(yield func(Wave) bool) {
		start, number, struck := time.Now(), 0, time.Time{}
		for round := 0; ; round++ {
			crowd := o.part(shares[round%len(shares)])
			switch {
			case o.Every == 0:
			case round > 0 && time.Since(struck) >= o.Every:
				crowd, struck = *o, time.Now()
			default:
				crowd.Fault = ""
			}
			for _, name := range names {
				if round >= least && time.Since(start) >= o.For {
					return
				}
				number++
				if !yield(Wave{crowd, number, name}) {
					return
				}
			}
		}
	}
}

// part returns the crowd with a share of its buyers and of its stock. It keeps at least two buyers: fewer
// cannot overlap.
func (o *Crowd) part(share float64) Crowd {
	part := *o
	part.Buyers = min(o.Buyers, max(2, int(share*float64(o.Buyers))))
	part.Stock = max(1, o.Stock*int64(part.Buyers)/int64(o.Buyers))
	return part
}
