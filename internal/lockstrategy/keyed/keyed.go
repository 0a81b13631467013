// Package keyed provides a map that drops an entry when its last user releases it. An entry is, for example,
// the lock of a product. So a client that invents keys, such as product names, does not fill the memory.
//
// It imports only the standard library, because rlock uses it and other programs import rlock.
package keyed

import (
	"iter"
)

// A Map holds one value per key and counts its users. The zero Map is empty and ready to use.
//
// It is not safe for concurrent use. The mutex that guards the values must also guard the map, so
// that a caller can look up and change a value in one step.
type Map[K comparable, V any] struct {
	entries map[K]*entry[V]
}

type entry[V any] struct {
	value V
	users int
}

// Use adds a user to the key and returns its value. The function `fresh` makes the value for the first user.
// Each Use must be followed by one Release.
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

// Release removes a user from the key. With the last user, it removes the value and returns true.
// It panics if the key has no user.
func (m *Map[K, V]) Release(key K) (last bool) {
	e := m.entries[key]
	if e == nil {
		panic("keyed: Release of a key without users")
	}
	e.users--
	if e.users == 0 {
		delete(m.entries, key)
	}
	return e.users == 0
}

// Get returns the value of a key in use, or the zero value.
func (m *Map[K, V]) Get(key K) (value V, used bool) {
	if e := m.entries[key]; e != nil {
		return e.value, true
	}
	return value, false
}

// All iterates over every key in use and its value, in no particular order.
func (m *Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for key, e := range m.entries {
			if !yield(key, e.value) {
				return
			}
		}
	}
}

// Len returns the number of keys in use.
func (m *Map[K, V]) Len() int { return len(m.entries) }
