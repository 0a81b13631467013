// Package keyed is a map whose entries live while somebody uses them: the lock
// of a product, the subscription to a channel. A key that nobody uses leaves
// nothing behind, so made-up keys do not fill the memory.
//
// It imports nothing but the standard library, because rlock, which other
// programs import, uses it.
package keyed

import (
	"iter"
)

// A Map holds one value a key and counts its users. The zero Map is empty and
// ready.
//
// It is not safe for concurrent use: its owner guards it by the mutex that
// guards the values, so that a value is looked up and changed in one step.
type Map[K comparable, V any] struct {
	entries map[K]*entry[V]
}

type entry[V any] struct {
	value V
	users int
}

// Use counts one user more of the key and returns its value, which fresh makes
// for the first user. Each Use is followed by one Release.
func (m *Map[K, V]) Use(key K, fresh func() V) V {
	e := m.entries[key]
	if e == nil {
		e = &entry[V]{value: fresh()}
		if m.entries == nil {
			m.entries = map[K]*entry[V]{}
		}
		m.entries[key] = e
	}
	e.users++
	return e.value
}

// Release counts one user less. The last one takes the value out of the map;
// last says so. It panics when the key has no user.
func (m *Map[K, V]) Release(key K) (last bool) {
	e := m.entries[key]
	if e == nil {
		panic("keyed: Release of a key that nobody uses")
	}
	e.users--
	if e.users == 0 {
		delete(m.entries, key)
	}
	return e.users == 0
}

// Get returns the value of a key that somebody uses, or the zero value.
func (m *Map[K, V]) Get(key K) (value V, used bool) {
	if e := m.entries[key]; e != nil {
		return e.value, true
	}
	return value, false
}

// All is every key in use with its value, in no order.
func (m *Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for key, e := range m.entries {
			if !yield(key, e.value) {
				return
			}
		}
	}
}

// Len is the number of keys in use.
func (m *Map[K, V]) Len() int { return len(m.entries) }
