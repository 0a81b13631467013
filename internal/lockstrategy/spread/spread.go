// Package spread distributes the buyers of one process over the rows of a product. Each row sells
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

// Bounds of the number of rows of a product. More rows than simultaneous buyers help no buyer, and a sweep,
// which divides the stock evenly again, locks and writes all rows. If a COMMIT holds its row for 5 ms, 32
// rows allow 6,400 sales per second.
const (
	MinRows = 2
	MaxRows = 32
)

// Crowds has a Crowd for each product that has buyers in this process. The zero value is ready to use. It
// is safe for concurrent use.
type Crowds struct {
	mu    sync.Mutex
	inUse keyed.Map[string, *Crowd]
}

// A Crowd counts the buyers of one product in this process, and remembers the last known number of rows.
type Crowd struct {
	mu      sync.Mutex
	rows    int64          // rows to choose from
	at      [MaxRows]int64 // number of buyers at each row
	buyers  int64
	growing bool  // a buyer is adding rows by a sweep
	sweeps  int64 // number of sweeps by this process
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

// A Choice is the first step of a buyer: to take from one row, or to make more rows.
type Choice struct {
	Row    int64 // row to take from
	Grow   bool  // the buyer makes more rows, by a sweep
	rows   int64 // with Grow: the number of rows wanted at that time; fewer may be wanted at the sweep
	sweeps int64 // Crowd.sweeps at the time of the choice
}

// Choose returns the first choice of a buyer. Unless the field Grow is set, the buyer counts as being at
// the row until the caller calls Gone.
func (c *Crowd) Choose(o purchase.Order) Choice {
	c.mu.Lock()
	defer c.mu.Unlock()
	choice := Choice{Grow: c.wanted() > c.rows && !c.growing, sweeps: c.sweeps}
	if choice.Grow {
		c.growing, choice.rows = true, c.wanted()
		return choice
	}
	choice.Row = c.emptier(twoOf(o, c.rows))
	c.at[choice.Row]++
	return choice
}

// ChooseAmong returns the buyer's next choice, among the rows that had enough units. Another
// process may have made these rows.
func (c *Crowd) ChooseAmong(o purchase.Order, enough []int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows = max(c.rows, enough[len(enough)-1]+1)
	one, other := twoOf(o, int64(len(enough)))
	row := c.emptier(enough[one], enough[other])
	c.at[row]++
	return row
}

// Gone records that a buyer has left its row.
func (c *Crowd) Gone(row int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at[row]--
}

// Due reports whether a sweep is still needed, and how many rows the sweep should make. If another buyer
// has divided the stock since this buyer chose, a sweep is needed only to make more rows.
func (c *Crowd) Due(choice Choice) (rows int64, due bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rows = max(c.rows, c.wanted(), choice.rows)
	return rows, c.sweeps == choice.sweeps || choice.Grow && rows > c.rows
}

// Swept records how a sweep ended.
func (c *Crowd) Swept(choice Choice, rows int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.growing = c.growing && !choice.Grow
	if err == nil {
		c.rows = rows
		c.sweeps++
	}
}

// wanted returns the number of rows that the current number of buyers needs. It is a power of two, so that a
// growing number of buyers needs few sweeps.
func (c *Crowd) wanted() int64 {
	return min(max(MinRows, int64(1)<<bits.Len64(uint64(max(c.buyers-1, 0)))), MaxRows)
}

// emptier returns the row with fewer buyers of this process (Mitzenmacher, "The Power of Two
// Choices in Randomized Load Balancing", 2001). If the key alone selected the row, buyers would
// queue at some rows while others are free.
func (c *Crowd) emptier(one, other int64) int64 {
	if c.at[other] < c.at[one] {
		return other
	}
	return one
}

// twoOf returns the two rows, of n, that the order's Idempotency-Key or buyer's name selects.
func twoOf(o purchase.Order, n int64) (one, other int64) {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(cmp.Or(o.IdempotencyKey, o.Purchaser)))
	sum := hash.Sum64()
	return int64(sum % uint64(n)), int64(sum >> 32 % uint64(n))
}
