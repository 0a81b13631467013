package waiting

import (
	"context"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/purchase"
)

// MaxGroup is how many buyers one group has, at most.
const MaxGroup = 500

// Groups has the buyers of one process who want the same product served together, by a
// leader for the followers. It is safe for concurrent use.
//
//	Join -> the line -> Gather, at the row: the group -> Bind, before the COMMIT -> Answer
//	 \_________________________________________________\_ until here a buyer may give up
//
// The first in line starts a leader, a goroutine that calls serve. Whoever comes while the
// leader is on its way to what lets in one group at a time stands in line, and the leader
// takes all of them when it is there. From then on the line is the next leader's: one group
// fills while others are written. No group waits to be filled. How many are under way at
// once follows from how long the COMMIT takes, see mayLead.
type Groups struct {
	serve func(g *Group)
	now   func() time.Time

	mu        sync.Mutex
	byProduct map[string]*rank

	// How long a group takes, of late: from Gather to Bind, and from there to its end.
	writes, commits time.Duration
}

// rank is the line of one product, with its leaders. It is there while it has any.
type rank struct {
	product string
	line    []*Member // in order of arrival, with those who have left
	waiting int       // of line, who have not
	ahead   *Group    // its leader is on its way and will take the line; nil where none is
	leaders int
}

// A Member is one buyer.
type Member struct {
	Order purchase.Order
	Since time.Time // it began to wait

	ctx         context.Context
	answer      chan answered // of capacity 1: a leader never waits for a buyer
	group       *Group        // nil in the line
	left, bound bool
}

type answered struct {
	receipt purchase.Receipt
	err     error
}

// A Group is who is served together. It is for the goroutine of its leader.
type Group struct {
	Product string
	// Ctx has the values of the first buyer's, and ends when nobody is left to be served.
	Ctx context.Context

	cancel   context.CancelFunc
	groups   *Groups
	rank     *rank
	members  []*Member
	present  int // of members
	gathered bool
	since    time.Time // Gather, or Bind where timed
	timed    bool
}

// NewGroups has serve called in a goroutine for each group. It must answer each Member
// whom it has gathered.
func NewGroups(now func() time.Time, serve func(g *Group)) *Groups {
	return &Groups{serve: serve, now: now, byProduct: map[string]*rank{}}
}

// maxLeaders is how many leaders of one product are under way at once, at most.
const maxLeaders = 4

// mayLead is how many leaders may be under way: as many as it takes to have one of them
// write at any time while the others wait for the disk. Where the disk is faster than the
// writes that is one: a second group would be small, and cost as much as a large one.
// Sales a second of one leader, 2, 3 and 5, medians of nine rounds in turn, wrk, on two
// cores that others used, COMMIT at 0.1 ms: 3969, 2255, 2086, 1697 of 64 clients, 2312,
// 2038, 1655, 1709 of 256.
func (gs *Groups) mayLead() int {
	switch {
	case gs.commits < gs.writes:
		return 1
	case gs.commits >= maxLeaders*gs.writes: // nothing is known yet, too
		return maxLeaders
	}
	return min(1+int(gs.commits/gs.writes), maxLeaders)
}

// recently adds a value to a mean in which the last eight weigh most.
func recently(mean *time.Duration, value time.Duration) {
	if *mean == 0 {
		*mean = value
	}
	*mean += (value - *mean) / 8
}

// Join puts the buyer into the line. Await must follow.
func (gs *Groups) Join(ctx context.Context, o purchase.Order, since time.Time) *Member {
	m := &Member{Order: o, Since: since, ctx: ctx, answer: make(chan answered, 1)}
	gs.mu.Lock()
	defer gs.mu.Unlock()
	r := gs.byProduct[o.Product]
	if r == nil {
		r = &rank{product: o.Product}
		gs.byProduct[r.product] = r
	}
	r.line = append(r.line, m)
	r.waiting++
	gs.lead(r)
	return m
}

// Await returns what the buyer is answered, or the cause of its context when that ends
// before its group is bound: then nothing is sold to it.
func (gs *Groups) Await(m *Member) (purchase.Receipt, error) {
	select {
	case a := <-m.answer:
		return a.receipt, a.err
	case <-m.ctx.Done():
		if gs.leave(m) {
			return purchase.Receipt{}, context.Cause(m.ctx)
		}
	}
	a := <-m.answer // the COMMIT was sent
	return a.receipt, a.err
}

// Answer is what Await returns. It is called once.
func (m *Member) Answer(receipt purchase.Receipt, err error) { m.answer <- answered{receipt, err} }

// lead starts a leader if somebody waits for one. The caller holds the mutex.
func (gs *Groups) lead(r *rank) {
	if r.ahead != nil || r.waiting == 0 || r.leaders >= gs.mayLead() {
		return
	}
	for r.line[0].left {
		r.line = r.line[1:]
	}
	r.leaders++
	r.ahead = gs.newGroup(r, r.line[0])
	go gs.run(r.ahead)
}

func (gs *Groups) newGroup(r *rank, first *Member) *Group {
	g := &Group{Product: r.product, groups: gs, rank: r}
	g.Ctx, g.cancel = context.WithCancel(context.WithoutCancel(first.ctx))
	return g
}

func (gs *Groups) run(g *Group) {
	gs.serve(g)
	g.cancel()
	gs.mu.Lock()
	defer gs.mu.Unlock()
	r := g.rank
	if !g.gathered { // all who stood in line had left
		r.ahead = nil
	}
	if g.timed {
		recently(&gs.commits, gs.now().Sub(g.since))
	}
	r.leaders--
	gs.lead(r)
	if r.leaders == 0 {
		delete(gs.byProduct, r.product)
	}
}

// leave takes the buyer out of the line or its group; false when that is bound.
func (gs *Groups) leave(m *Member) bool {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if !m.bound {
		gs.drop(m)
	}
	return !m.bound
}

// drop ends the group's context with its last buyer. The caller holds the mutex.
func (gs *Groups) drop(m *Member) {
	if m.left {
		return
	}
	m.left = true
	g := m.group
	if g == nil {
		r := gs.byProduct[m.Order.Product]
		r.waiting--
		if r.waiting == 0 && r.ahead != nil {
			r.ahead.cancel()
		}
		return
	}
	g.present--
	if g.present == 0 {
		g.cancel()
	}
}

// Gather takes up to MaxGroup of those who stand in line, in order of arrival. Called
// again, it returns those of them who have not left.
func (g *Group) Gather() []*Member {
	gs := g.groups
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if !g.gathered && g.Ctx.Err() == nil {
		g.take()
	}
	g.members = g.here()
	return g.members
}

func (g *Group) take() {
	r := g.rank
	g.gathered, g.since, r.ahead = true, g.groups.now(), nil
	n := min(len(r.line), MaxGroup)
	for _, m := range r.line[:n] {
		if !m.left {
			m.group = g
			g.members = append(g.members, m)
		}
	}
	g.present = len(g.members)
	r.waiting -= g.present
	if r.line = r.line[n:]; r.waiting == 0 {
		r.line = nil // what is left of it has left
	}
	g.groups.lead(r)
}

// here are those who have not left. One whose context has ended leaves now, even if its own
// goroutine has not come to it, or was told to wait for the COMMIT.
func (g *Group) here() (here []*Member) {
	for _, m := range g.members {
		told := m.bound
		m.bound = false
		if m.ctx.Err() == nil {
			here = append(here, m)
			continue
		}
		g.groups.drop(m)
		if told {
			m.Answer(purchase.Receipt{}, context.Cause(m.ctx))
		}
	}
	return here
}

// Unbind lets everybody leave again: there was no COMMIT, or it was refused.
func (g *Group) Unbind() {
	g.groups.mu.Lock()
	defer g.groups.mu.Unlock()
	g.members = g.here()
}

// Gathered: Gather has taken the line.
func (g *Group) Gathered() bool { return g.gathered }

// Bind keeps everybody in the group; false when somebody has left since Gather. It is
// called when nothing but the COMMIT is left to be sent.
func (g *Group) Bind() bool {
	g.groups.mu.Lock()
	defer g.groups.mu.Unlock()
	for _, m := range g.members {
		if m.left || m.ctx.Err() != nil {
			return false
		}
	}
	for _, m := range g.members {
		m.bound = true
	}
	if now := g.groups.now(); !g.timed && !g.since.IsZero() {
		recently(&g.groups.writes, now.Sub(g.since))
		g.timed, g.since = true, now
	}
	return true
}

// Apart is a group of some of the members, at least one, who are to be served again.
func (g *Group) Apart(members []*Member) *Group {
	gs := g.groups
	gs.mu.Lock()
	defer gs.mu.Unlock()
	part := gs.newGroup(g.rank, members[0])
	part.gathered, part.members, part.present = true, members, 0
	for _, m := range members {
		m.group = part
		if !m.left {
			part.present++
		}
	}
	if part.members = part.here(); part.present == 0 {
		part.cancel()
	}
	return part
}
