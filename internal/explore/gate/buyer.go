package gate

import "context"

type buyerKey struct{}

// WithBuyer returns a context whose commands belong to buyer id, for a connection that serves several buyers.
func WithBuyer(ctx context.Context, id int) context.Context {
	return context.WithValue(ctx, buyerKey{}, id)
}

// BuyerOf returns `owner` or, if that is 0, the buyer of ctx.
func BuyerOf(ctx context.Context, owner int) int {
	if owner != 0 {
		return owner
	}
	id, _ := ctx.Value(buyerKey{}).(int)
	return id
}

type backgroundKey struct{}

// Background returns a context that marks its commands as the renewal of a lease.
func Background(ctx context.Context) context.Context {
	return context.WithValue(ctx, backgroundKey{}, true)
}

func isBackground(ctx context.Context) bool { return ctx.Value(backgroundKey{}) != nil }
