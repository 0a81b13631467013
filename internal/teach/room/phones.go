package room

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Bounds of the phones that a room remembers.
const (
	MaxBuyers = 300 // phones in all; a further phone replaces the one that oldest returns
	MaxFrom   = 150 // phones from one remote address; a class may share its school's address
)

// maxSilence is how long a phone may be silent before a restock forgets it. A phone polls every second.
const maxSilence = 15 * time.Second

// phones holds the buyers that a room remembers, and decides which of them to forget. The room's
// mutex guards it.
type phones struct {
	byID   map[string]*buyer
	joined int
}

// join adds a phone and the name of its holder. It returns errFull if the room is full and no phone can be
// removed.
func (p *phones) join(who Phone) (*buyer, error) {
	b := p.byID[who.ID]
	if b == nil {
		if err := p.makePlace(who.From); err != nil {
			return nil, err
		}
		p.joined++
		b = &buyer{number: p.joined, from: who.From}
		p.byID[who.ID] = b
	}
	if b.name != who.Name {
		b.name, b.displayName = who.Name, p.uniqueName(who.Name)
	}
	b.lastSeen = time.Now()
	return b, nil
}

// uniqueName adds a number to a name that another buyer has typed too: "Ann (2)". The records of sales have
// the name that was typed.
func (p *phones) uniqueName(name string) string {
	taken := map[string]bool{}
	for _, b := range p.byID {
		taken[b.displayName] = true
	}
	shown := name
	for n := 2; taken[shown]; n++ {
		shown = fmt.Sprintf("%s (%d)", name, n)
	}
	return shown
}

// makePlace removes a phone if the room is full or has MaxFrom phones of the address `from`. In the second
// case it removes a phone of this address, so that the address cannot push out phones of others.
func (p *phones) makePlace(from string) error {
	same := 0
	for _, b := range p.byID {
		if b.from == from {
			same++
		}
	}
	full := from != "" && same >= MaxFrom
	if !full && len(p.byID) < MaxBuyers {
		return nil
	}
	id, found := p.oldest(func(b *buyer) bool { return b.press == nil && (!full || b.from == from) })
	if !found {
		return errFull
	}
	delete(p.byID, id)
	return nil
}

// oldest returns the phone that has been silent for longest, among those that never pressed if there are any.
// A script can invent any number of ids, but a press comes from a person.
func (p *phones) oldest(among func(b *buyer) bool) (id string, found bool) {
	var oldest *buyer
	for phone, b := range p.byID {
		if among(b) && (oldest == nil || b.pressed == oldest.pressed && b.lastSeen.Before(oldest.lastSeen) || !b.pressed && oldest.pressed) {
			id, oldest = phone, b
		}
	}
	return id, oldest != nil
}

// begin clears the results for a new sale, and forgets the phones that have been silent for longer than
// maxSilence.
func (p *phones) begin() {
	maps.DeleteFunc(p.byID, func(_ string, b *buyer) bool { return time.Since(b.lastSeen) > maxSilence && b.press == nil })
	for _, b := range p.byID {
		b.result = result{}
	}
}

// inOrder returns the buyers in the order in which they came.
func (p *phones) inOrder() []*buyer {
	return slices.SortedFunc(maps.Values(p.byID), func(a, b *buyer) int { return cmp.Compare(a.number, b.number) })
}
