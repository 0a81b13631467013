package fault

import (
	"context"

	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/purchase"
)

const keyedBuyer = "keyed"

func (b *clients) keyed(ctx context.Context, shop *CellShop, units int64) buyers.Answer {
	return b.sender.One(ctx, buyers.Buyer{Name: keyedBuyer, URL: shop.URL(), Units: units, Key: b.sender.Product + "/" + keyedBuyer})
}

// repeat sends the order with an Idempotency-Key again, to one shop after another. It adds the recorded sale
// and the new answers to t.orders. Without a recorded sale it returns ErrMissed.
func repeat(ctx context.Context, t *Testbed, units int64, shops ...*CellShop) error {
	sales, err := t.Servers.Auditor.Sales(ctx, t.Product)
	if err != nil {
		return err
	}
	sale := buyers.Answer{Answer: audit.Answer{Purchaser: keyedBuyer, Units: units, Outcome: purchase.Sold}}
	for id, s := range sales {
		if s.Purchaser == keyedBuyer {
			sale.ID = id
		}
	}
	if sale.ID == 0 {
		return missed("the order with a key has no record")
	}
	again := newClients(t)
	defer again.close()
	rounds := [][]buyers.Answer{{sale}}
	for _, shop := range shops {
		rounds = append(rounds, []buyers.Answer{again.keyed(ctx, shop, units)})
	}
	t.orders.CompareIDsOnly = true // the answers compare by ID only: the first answer comes from the record and has no receipt
	t.orders.Add(rounds...)
	return ctx.Err()
}
