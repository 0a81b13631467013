package gate

import "context"

type buyerKey struct{}

// WithBuyer names the buyer of the commands under ctx, for a connection that serves several buyers.
func WithBuyer(ctx context.Context, id int) context.Context {
	return context.WithValue(ctx, buyerKey{}, id)
}

// BuyerOf returns owner or, if that is 0, the buyer of ctx.
func BuyerOf(ctx context.Context, owner int) int {
	if owner != 0 {
		return owner
	}
	id, _ := ctx.Value(buyerKey{}).(int)
	return id
}

type backgroundKey struct{}

// Background marks ctx as the context of a lease's renewal.
func Background(ctx context.Context) context.Context {
	return context.WithValue(ctx, backgroundKey{}, true)
}

func isBackground(ctx context.Context) bool { return ctx.Value(backgroundKey{}) != nil }
