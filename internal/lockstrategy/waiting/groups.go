package waiting

import (
	"context"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/purchase"
)

// MaxGroup is the maximum number of buyers in one group.
const MaxGroup = 500

// Groups serves the buyers of one process in groups, each for one product: a leader serves its
// followers. It is safe for concurrent use.
//
//	Join -> queue -> Gather, at the row: the group -> Bind, before the COMMIT -> Answer
//	 \______________________________________________\_ until here a buyer may give up
//
// The first buyer in the queue starts a leader, a goroutine that calls the function `serve`. The leader waits
// for the lock of the row, which one group holds at a time. When it has the lock, it takes all buyers that have
// arrived by then. Later buyers wait for the next leader, so one group fills while others are written. No group
// waits until it is full. The duration of a COMMIT determines how many leaders work at once (mayLead).
type Groups struct {
	serve func(g *Group)
	now   func() time.Time

	mu        sync.Mutex
	byProduct map[string]*productQueue

	// Recent mean durations: of the writes, from Gather to Bind, and of the COMMIT, from Bind to the end of
	// the group.
	writes, commits time.Duration
}

// productQueue is the queue of one product. It exists while it has a buyer or a leader.
type productQueue struct {
	product string
	line    []*Member // in order of arrival, including buyers that have left
	waiting int       // members of line that have not left
	ahead   *Group    // the group whose leader waits for the row's lock and will then take the queued buyers; nil if there is none
	leaders int
}

// A Member is one buyer.
type Member struct {
	Order purchase.Order
	Since time.Time // when the buyer began to wait

	ctx         context.Context
	answer      chan answered // has capacity 1, so that a leader never waits for a buyer
	group       *Group        // nil while the buyer is in the queue
	left, bound bool
}

type answered struct {
	receipt purchase.Receipt
	err     error
}

// A Group is the set of buyers that are served together. Only the goroutine of its leader uses it.
type Group struct {
	Product string
	// Ctx has the values of the first buyer's context, and ends when no buyer is left to serve.
	Ctx context.Context

	cancel   context.CancelFunc
	groups   *Groups
	queue    *productQueue
	members  []*Member
	present  int // number of members that have not left
	gathered bool
	since    time.Time // the time of Bind if timed is true, else of Gather
	timed    bool
}

// NewGroups returns Groups that call the function `serve` in a goroutine for each group. The function must
// answer each Member that it has gathered.
func NewGroups(now func() time.Time, serve func(g *Group)) *Groups {
	return &Groups{serve: serve, now: now, byProduct: map[string]*productQueue{}}
}

// maxLeaders is the maximum number of leaders of one product that work at once.
const maxLeaders = 4

// mayLead returns how many leaders may work at once. One leader should always be writing while the others
// wait for the disk, in their COMMIT. If the disk is faster than the writes, one leader is enough: a second
// group would be small, and cost as much as a large one.
//
// Sales per second with 1, 2, 3 and 5 leaders and a COMMIT of 0.1 ms: 3969, 2255, 2086 and 1697 with 64
// clients; 2312, 2038, 1655 and 1709 with 256. (wrk, medians of nine interleaved rounds on two shared cores.)
func (gs *Groups) mayLead() int {
	switch {
	case gs.commits < gs.writes:
		return 1
	case gs.commits >= maxLeaders*gs.writes: // also true before the first measurement
		return maxLeaders
	}
	return min(1+int(gs.commits/gs.writes), maxLeaders)
}

// recently adds a value to a mean in which the last eight values weigh most.
func recently(mean *time.Duration, value time.Duration) {
	if *mean == 0 {
		*mean = value
	}
	*mean += (value - *mean) / 8
}

// Join puts the buyer into the queue. Await must follow.
func (gs *Groups) Join(ctx context.Context, o purchase.Order, since time.Time) *Member {
	m := &Member{Order: o, Since: since, ctx: ctx, answer: make(chan answered, 1)}
	gs.mu.Lock()
	defer gs.mu.Unlock()
	r := gs.byProduct[o.Product]
	if r == nil {
		r = &productQueue{product: o.Product}
		gs.byProduct[r.product] = r
	}
	r.line = append(r.line, m)
	r.waiting++
	gs.lead(r)
	return m
}

// Await returns the buyer's answer. If the buyer's context ends before the leader calls Bind, Await returns
// the cause, and nothing is sold to the buyer.
func (gs *Groups) Await(m *Member) (purchase.Receipt, error) {
	select {
	case a := <-m.answer:
		return a.receipt, a.err
	case <-m.ctx.Done():
		if gs.leave(m) {
			return purchase.Receipt{}, context.Cause(m.ctx)
		}
	}
	a := <-m.answer // the COMMIT was sent, so the answer must follow
	return a.receipt, a.err
}

// Answer sets the result of Await. It is called once per member.
func (m *Member) Answer(receipt purchase.Receipt, err error) { m.answer <- answered{receipt, err} }

// lead starts a leader if a buyer waits for one. The caller holds the mutex.
func (gs *Groups) lead(r *productQueue) {
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

func (gs *Groups) newGroup(r *productQueue, first *Member) *Group {
	g := &Group{Product: r.product, groups: gs, queue: r}
	g.Ctx, g.cancel = context.WithCancel(context.WithoutCancel(first.ctx))
	return g
}

func (gs *Groups) run(g *Group) {
	gs.serve(g)
	g.cancel()
	gs.mu.Lock()
	defer gs.mu.Unlock()
	r := g.queue
	if !g.gathered { // all waiting buyers had left
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

// leave takes the buyer out of the queue or its group. It returns false if Bind has fixed the group's members.
func (gs *Groups) leave(m *Member) bool {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if !m.bound {
		gs.drop(m)
	}
	return !m.bound
}

// drop marks the buyer as left. The last buyer that leaves ends the group's context. The caller
// holds the mutex.
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

// Gather takes up to MaxGroup waiting buyers, in order of arrival. A second call returns the members
// that have not left.
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
	r := g.queue
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
		r.line = nil // all remaining members have left
	}
	g.groups.lead(r)
}

// here returns the members that have not left. It first removes every member whose context has ended, even
// if the member's own goroutine has not noticed that yet or waits for the COMMIT.
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

// Unbind lets all members leave again, after a COMMIT that was not sent or was refused.
func (g *Group) Unbind() {
	g.groups.mu.Lock()
	defer g.groups.mu.Unlock()
	g.members = g.here()
}

// Gathered reports whether Gather has taken buyers from the queue.
func (g *Group) Gathered() bool { return g.gathered }

// Bind keeps all members in the group until the outcome of the COMMIT is known. It returns false if a
// member has left since Gather. The leader calls it just before it sends the COMMIT.
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

// Apart returns a new group of the given members, at least one, so that the caller can serve them separately.
func (g *Group) Apart(members []*Member) *Group {
	gs := g.groups
	gs.mu.Lock()
	defer gs.mu.Unlock()
	part := gs.newGroup(g.queue, members[0])
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
