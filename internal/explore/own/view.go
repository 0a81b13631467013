package own

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/gate"
	"github.com/oversell/oversell/internal/explore/schedule"
)

// An onlooker shows a run to the user who chooses the steps. It changes nothing.
type onlooker struct{ *run }

// view implements schedule.Point.View.
func (r onlooker) view(ctx context.Context, moves []move) (v schedule.View, err error) {
	state, err := r.x.stock.Read(ctx)
	if err != nil {
		return v, err
	}
	v.Stock, v.Records, v.Sold = state.Leftover, state.Records, state.UnitsSold
	v.Steps = slices.Clone(r.notes.Steps)
	names := maps.Clone(r.notes.secrets) // a copy, since a view must not change the names that the witness uses
	for _, b := range r.buyers {
		v.Buyers = append(v.Buyers, r.standing(b, names))
	}
	for _, m := range moves {
		text := m.Text
		if m.Event == "" {
			text = names.readable(m.Buyer, m.Command.Text)
		}
		v.Texts = append(v.Texts, text)
	}
	for _, s := range r.x.servers {
		held, err := s.Held(ctx)
		if err != nil {
			return v, err
		}
		for _, key := range held {
			owner := r.owners.byKey[s.Name+" "+key.Name]
			v.Keys = append(v.Keys, schedule.Key{Server: s.Name, Name: key.Name, Value: names.readable(owner, key.Value), Left: key.TTL, Buyer: owner})
		}
	}
	return v, nil
}

func (r onlooker) standing(b *buyer, names secrets) schedule.Standing {
	s := schedule.Standing{Buyer: b.id, Read: r.notes.read[b.id], Over: b.over, Crashed: b.crashed, Memory: r.notes.inMemory[b.id] && !b.crashed}
	if !b.crashed {
		s.Open = b.open()
	}
	if b.over || b.crashed {
		s.Answer = b.outcome().Answer
	}
	for _, o := range b.gate {
		s.Gate = append(s.Gate, schedule.Command{Token: token(o), Text: names.readable(b.id, o.Text), Server: o.Server, Ready: b.runnable(o)})
	}
	slices.SortFunc(s.Gate, func(x, y schedule.Command) int { return strings.Compare(x.Token, y.Token) })
	s.Waits, s.For = r.waits(b)
	return s
}

// waits describes the event that ends a blocked buyer's wait, and lists the buyers that can cause it.
func (r onlooker) waits(b *buyer) (what string, whom []int) {
	if b.over || b.crashed || slices.ContainsFunc(b.gate, b.runnable) {
		return "", nil
	}
	switch {
	case b.waits() != nil:
		return "until another's transaction has ended", r.others(b, func(o *buyer) bool { return !o.crashed && o.open() })
	case len(b.gate) > 0:
		servers := slices.Sorted(maps.Keys(b.asks))
		return "until another buyer changes " + strings.Join(servers, " or ") + ", because its last try failed",
			r.others(b, func(o *buyer) bool { return r.owners.has(servers, o.id) })
	case r.x.gates.PubSub.Listens(b.id):
		return "for the message that the lock is free", r.others(b, func(o *buyer) bool { return r.owners.has(nil, o.id) })
	}
	return "in its process, for another buyer there", r.others(b, func(o *buyer) bool { return r.notes.inMemory[o.id] })
}

func (r onlooker) others(b *buyer, matches func(*buyer) bool) (ids []int) {
	for _, o := range r.buyers {
		if o != b && matches(o) {
			ids = append(ids, o.id)
		}
	}
	return ids
}

// has reports whether the buyer holds a key on one of these servers; nil means any server.
func (w *owners) has(servers []string, buyer int) bool {
	for key, owner := range w.byKey {
		server, _, _ := strings.Cut(key, " ")
		if owner == buyer && (servers == nil || slices.Contains(servers, server)) {
			return true
		}
	}
	return false
}

func reads(o *gate.Op) bool {
	return o.Effect == schedule.Reads || o.Server == gate.SQL && strings.HasPrefix(o.Name, "SELECT")
}

// known records the last value that a buyer has read.
func (w *recorder) known(o *gate.Op, result string) {
	if reads(o) && o.Err == nil && result != "" {
		w.read[o.Buyer] = result
	}
}
