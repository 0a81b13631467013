package locktest

import "context"

// Connect makes a value for Subject.Connect from a lock that is one function. The function `lock` waits until
// it holds the lock with the given name, ctx ends or the server fails. It returns the function that releases
// the lock. Both must be safe for concurrent use. All clients call the same function, although each stands
// for a process. If the function keeps state for its process, such as a queue of its waiters, write a Client
// instead.
func Connect(lock func(ctx context.Context, name string) (unlock func(context.Context) error, err error)) func(context.Context) (Client, error) {
	return func(context.Context) (Client, error) { return function(lock), nil }
}

// A function is a Client whose lock is a function.
type function func(ctx context.Context, name string) (func(context.Context) error, error)

// Lock implements Client.
func (f function) Lock(ctx context.Context, name string) (Lease, error) {
	unlock, err := f(ctx, name)
	if err != nil {
		return nil, err
	}
	return release(unlock), nil
}

// Close implements Client.
func (function) Close() error { return nil }

// A release is a Lease with a function as its Unlock.
type release func(context.Context) error

// Unlock implements Lease.
func (r release) Unlock(ctx context.Context) error { return r(ctx) }
