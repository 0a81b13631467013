package waiting

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/purchase"
)

// gates let leaders through one by one, first to gather a group and then to answer it.
type gates struct{ gather, commit chan struct{} }

func newGates() gates { return gates{make(chan struct{}), make(chan struct{})} }

// pass waits until the gate lets it through, or until the group's context ends.
func pass(g *Group, gate chan struct{}) bool {
	select {
	case <-gate:
		return true
	case <-g.Ctx.Done():
		return false
	}
}

func joined(t *testing.T, gs *Groups, ctx context.Context, buyer string) <-chan error {
	t.Helper()
	m := gs.Join(ctx, purchase.Order{Product: "apple", Purchaser: buyer, Amount: 1}, time.Now())
	answer := make(chan error, 1)
	go func() {
		_, err := gs.Await(m)
		answer <- err
	}()
	synctest.Wait()
	return answer
}

// TestGroupsFill: while one group is written, the next one fills in order of arrival. The number of
// leaders stays within its limit.
func TestGroupsFill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := newGates()
		var groups []string
		gs := NewGroups(time.Now, func(g *Group) {
			<-at.gather
			members := g.Gather()
			var names string
			for _, m := range members {
				names += m.Order.Purchaser
			}
			groups = append(groups, names)
			<-at.commit
			for _, m := range members {
				m.Answer(purchase.Receipt{}, nil)
			}
		})
		gs.writes, gs.commits = time.Millisecond, time.Millisecond // allows two leaders
		var answers []<-chan error
		join := func(buyers string) {
			for _, b := range buyers {
				answers = append(answers, joined(t, gs, t.Context(), string(b)))
			}
		}
		step := func(gate chan struct{}) {
			gate <- struct{}{}
			synctest.Wait()
		}
		join("abc")
		step(at.gather) // abc is being written
		join("de")
		step(at.gather) // de is being written, too
		join("fg")      // two leaders are under way
		select {
		case at.gather <- struct{}{}:
			t.Error("a third leader is under way")
		default:
		}
		step(at.commit) // one leader is free again
		step(at.gather)
		step(at.commit)
		step(at.commit)
		expect.DeepEqual(t, groups, []string{"abc", "de", "fg"}, "groups")
		for _, answer := range answers {
			expect.NoError(t, <-answer)
		}
		synctest.Wait()
		expect.Equal(t, len(gs.byProduct), 0, "products that are kept without waiting buyers")
	})
}

// TestLeaders: there are as many leaders as are needed for one of them to write at any time.
func TestLeaders(t *testing.T) {
	for _, c := range []struct {
		writes, commits time.Duration
		want            int
	}{{0, 0, 4}, {2, 1, 1}, {2, 2, 2}, {2, 3, 2}, {2, 4, 3}, {2, 7, 4}, {2, 90, 4}, {1 << 62, 1, 1}} {
		gs := &Groups{writes: c.writes, commits: c.commits}
		expect.Equal(t, gs.mayLead(), c.want, "writes take", c.writes, "COMMIT", c.commits, "leaders")
	}
}

// TestLeadersMeasured: Groups measures how long the writes and the COMMITs take.
func TestLeadersMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gs := NewGroups(time.Now, func(g *Group) {
			members := g.Gather()
			time.Sleep(2 * time.Millisecond) // by the clock of the synctest bubble
			g.Bind()
			time.Sleep(5 * time.Millisecond)
			members[0].Answer(purchase.Receipt{}, nil)
		})
		for range 3 {
			expect.NoError(t, <-joined(t, gs, t.Context(), "ann"))
			synctest.Wait()
		}
		if gs.writes != 2*time.Millisecond || gs.commits != 5*time.Millisecond {
			t.Errorf("writes take %s, COMMIT %s", gs.writes, gs.commits)
		}
	})
}

// TestGroupsFull: a buyer that finds a full group joins the next one.
func TestGroupsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := newGates()
		var sizes []int
		gs := NewGroups(time.Now, func(g *Group) {
			<-at.gather
			members := g.Gather()
			sizes = append(sizes, len(members))
			for _, m := range members {
				m.Answer(purchase.Receipt{}, nil)
			}
		})
		gs.writes = time.Millisecond // allows one leader
		for i := range MaxGroup + 2 {
			joined(t, gs, t.Context(), fmt.Sprint(i))
		}
		at.gather <- struct{}{}
		at.gather <- struct{}{}
		synctest.Wait()
		expect.DeepEqual(t, sizes, []int{MaxGroup, 2}, "sizes of the groups")
	})
}

// TestGroupsLeave: until a group is bound, a buyer can leave it or the queue without affecting
// others. The last member to leave ends the leader's work, and a later buyer gets a new leader.
func TestGroupsLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := newGates()
		refuse := false // whether the database refuses the COMMIT
		var groups []string
		gs := NewGroups(time.Now, func(g *Group) {
			if !pass(g, at.gather) {
				return
			}
			for members := g.Gather(); len(members) > 0; members = g.Gather() {
				if !pass(g, at.commit) {
					return
				}
				if !g.Bind() {
					continue
				}
				<-at.commit
				if refuse {
					refuse = false
					g.Unbind()
					continue
				}
				var names string
				for _, m := range members {
					names += m.Order.Purchaser
					m.Answer(purchase.Receipt{}, nil)
				}
				groups = append(groups, names)
				return
			}
		})
		hungUp := errors.New("hung up")
		buyer := func(name string) (answer <-chan error, hangUp func()) {
			ctx, cancel := context.WithCancelCause(t.Context())
			return joined(t, gs, ctx, name), func() { cancel(hungUp); synctest.Wait() }
		}
		step := func(gate chan struct{}) {
			gate <- struct{}{}
			synctest.Wait()
		}
		want := func(answer <-chan error, want error) {
			t.Helper()
			select {
			case err := <-answer:
				expect.ErrorIs(t, err, want)
			default:
				t.Errorf("no answer yet, want %v", want)
			}
		}

		a, aLeaves := buyer("a") // alone in the queue
		aLeaves()
		want(a, hungUp)

		b, bLeaves := buyer("b")
		c, cLeaves := buyer("c")
		d, dLeaves := buyer("d")
		e, eLeaves := buyer("e")
		bLeaves() // leaves the front of the queue
		want(b, hungUp)
		step(at.gather)
		cLeaves() // leaves the group
		want(c, hungUp)
		step(at.commit) // Bind fails, since c has left; d and e are gathered again
		step(at.commit) // d and e are bound
		dLeaves()
		if len(d) > 0 {
			t.Error("a buyer has left while the COMMIT was on its way")
		}
		refuse = true
		step(at.commit)
		want(d, hungUp)
		step(at.commit) // e is bound
		eLeaves()
		step(at.commit)
		want(e, nil)

		f, fLeaves := buyer("f") // the only member of its group
		step(at.gather)
		fLeaves()
		want(f, hungUp)
		if !slices.Equal(groups, []string{"e"}) || len(gs.byProduct) != 0 {
			t.Errorf("groups %q, want e alone; %d products are left", groups, len(gs.byProduct))
		}
	})
}

// TestGroupsApart: a part of a group has its own context, and its members may leave it.
func TestGroupsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := newGates()
		gs := NewGroups(time.Now, func(g *Group) {
			<-at.gather
			members := g.Gather()
			first, second := g.Apart(members[:1]), g.Apart(members[1:])
			if pass(first, at.commit) {
				t.Error("the context of a group without members goes on")
			}
			if len(first.Gather()) != 0 || !first.Gathered() {
				t.Error("the first part has its member still, or the line's")
			}
			<-at.commit
			for _, m := range second.Gather() {
				m.Answer(purchase.Receipt{}, nil)
			}
		})
		ctx, hangUp := context.WithCancel(t.Context())
		a, b := joined(t, gs, ctx, "a"), joined(t, gs, t.Context(), "b")
		at.gather <- struct{}{}
		synctest.Wait()
		hangUp()
		synctest.Wait()
		expect.ErrorIs(t, <-a, context.Canceled)
		at.commit <- struct{}{}
		expect.NoError(t, <-b)
	})
}
