// Package spread spreads the buyers of one process over the rows of a product, each of which sells
// to one buyer at a time.
package spread

import (
	"cmp"
	"hash/fnv"
	"math/bits"
	"sync"

	"github.com/oversell/oversell/internal/lockstrategy/keyed"
	"github.com/oversell/oversell/internal/purchase"
)

// Bounds of the number of rows. More rows than buyers at once serve no one, and a sweep locks and
// writes them all. 32 rows are 6,400 sales a second if a COMMIT holds its row for 5 ms.
const (
	MinRows = 2
	MaxRows = 32
)

// Crowds has the crowd of each product that has buyers in this process. The zero value is ready,
// and safe for concurrent use.
type Crowds struct {
	mu    sync.Mutex
	inUse keyed.Map[string, *Crowd]
}

// A Crowd is the buyers of one product, and what the process knows of its rows meanwhile.
type Crowd struct {
	mu      sync.Mutex
	rows    int64          // among which it chooses
	at      [MaxRows]int64 // the buyers at each row
	buyers  int64
	growing bool  // one of the buyers makes more rows
	sweeps  int64 // that this process has made
}

// Enter adds a buyer. Leave must follow.
func (cs *Crowds) Enter(product string) *Crowd {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.inUse.Use(product, func() *Crowd { return &Crowd{rows: MinRows} })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buyers++
	return c
}

// Leave removes a buyer.
func (cs *Crowds) Leave(product string) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c, _ := cs.inUse.Get(product)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buyers--
	cs.inUse.Release(product)
}

// A Choice is what a buyer does first.
type Choice struct {
	Row    int64 // to take from
	Grow   bool  // the buyer is the one that makes more rows, by a sweep
	sweeps int64 // that the buyer knows of
}

// Choose makes the first choice of a buyer. A buyer that is not to make more rows is at the row
// until Gone.
func (c *Crowd) Choose(o purchase.Order) Choice {
	c.mu.Lock()
	defer c.mu.Unlock()
	choice := Choice{Grow: c.wanted() > c.rows && !c.growing, sweeps: c.sweeps}
	if choice.Grow {
		c.growing = true
		return choice
	}
	choice.Row = c.emptier(twoOf(o, c.rows))
	c.at[choice.Row]++
	return choice
}

// ChooseAmong makes the buyer's next choice, among the rows that had enough. They may be rows that
// another process has made.
func (c *Crowd) ChooseAmong(o purchase.Order, enough []int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows = max(c.rows, enough[len(enough)-1]+1)
	one, other := twoOf(o, int64(len(enough)))
	row := c.emptier(enough[one], enough[other])
	c.at[row]++
	return row
}

// Gone notes that a buyer has left its row.
func (c *Crowd) Gone(row int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at[row]--
}

// Due reports whether a sweep is still to be made, and for how many rows. It is not if another
// buyer has swept since this one chose: the rows are as full as they can be.
func (c *Crowd) Due(choice Choice) (rows int64, due bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rows = max(c.rows, c.wanted())
	return rows, c.sweeps == choice.sweeps || choice.Grow && rows > c.rows
}

// Swept notes how a sweep ended.
func (c *Crowd) Swept(choice Choice, rows int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.growing = c.growing && !choice.Grow
	if err == nil {
		c.rows = rows
		c.sweeps++
	}
}

// wanted is the number of rows for the buyers: a power of two, so that a growing crowd makes few
// sweeps for them.
func (c *Crowd) wanted() int64 {
	return min(max(MinRows, int64(1)<<bits.Len64(uint64(max(c.buyers-1, 0)))), MaxRows)
}

// emptier is the row of two at which fewer buyers of this process are (Mitzenmacher, "The Power of
// Two Choices in Randomized Load Balancing", 2001): by the key alone some rows have lines while
// others are free.
func (c *Crowd) emptier(one, other int64) int64 {
	if c.at[other] < c.at[one] {
		return other
	}
	return one
}

// twoOf returns the two of n that the order's key names.
func twoOf(o purchase.Order, n int64) (one, other int64) {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(cmp.Or(o.IdempotencyKey, o.Purchaser)))
	sum := hash.Sum64()
	return int64(sum % uint64(n)), int64(sum >> 32 % uint64(n))
}
