// Package bad has misbehaving answers to the first exercise. The judge must end each of them and
// report in one line what it does. "HERE: name" marks the line that the report must name.
package bad

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"sync"
	"time"

	"github.com/oversell/oversell/exercises/kata"
)

// An answer is a learner's code that misbehaves before each sale.
type answer struct {
	kit  kata.Kit
	deed func(context.Context, kata.Kit, kata.Order) error
}

// Buy implements kata.Strategy.
func (a *answer) Buy(ctx context.Context, o kata.Order) (kata.Receipt, error) {
	if err := a.deed(ctx, a.kit, o); err != nil {
		return kata.Receipt{}, err
	}
	return a.kit.Sell(ctx, o)
}

// Panics panics in the buyer's goroutine.
func Panics(kit kata.Kit) kata.Strategy {
	return &answer{kit, func(_ context.Context, _ kata.Kit, o kata.Order) error {
		var sold map[string]int
		sold[o.Purchaser]++ // HERE: Panics
		return nil
	}}
}

// PanicsBeside panics in a goroutine of its own.
func PanicsBeside(kit kata.Kit) kata.Strategy {
	return &answer{kit, func(_ context.Context, _ kata.Kit, o kata.Order) error {
		done := make(chan bool)
		go func() {
			var sold map[string]int
			sold[o.Purchaser]++ // HERE: PanicsBeside
			close(done)
		}()
		<-done
		return nil
	}}
}

// Endless never returns. It sleeps, since a busy loop would slow down concurrent tests.
func Endless(kit kata.Kit) kata.Strategy {
	return &answer{kit, func(context.Context, kata.Kit, kata.Order) error {
		for {
			time.Sleep(time.Millisecond)
		}
	}}
}

// Stays leaves a goroutine behind.
func Stays(kit kata.Kit) kata.Strategy {
	return &answer{kit, func(context.Context, kata.Kit, kata.Order) error {
		go func() {
			select {} // HERE: Stays
		}()
		return nil
	}}
}

// Restocks adds the units that it sells to the stock.
func Restocks(kit kata.Kit) kata.Strategy {
	return &answer{kit, func(ctx context.Context, kit kata.Kit, o kata.Order) error {
		_, err := kit.Exec(ctx, kit.DB, "UPDATE product SET amount = amount + 1, stocked = stocked + 1 WHERE name = ?", o.Product)
		return err
	}}
}

// Deletes deletes records.
func Deletes(kit kata.Kit) kata.Strategy {
	return &answer{kit, func(ctx context.Context, kit kata.Kit, _ kata.Order) error {
		_, err := kit.Exec(ctx, kit.DB, "DELETE FROM purchase_history")
		return err
	}}
}

// Columns raises the fence of products that it does not sell.
func Columns(kit kata.Kit) kata.Strategy {
	return &answer{kit, func(ctx context.Context, kit kata.Kit, o kata.Order) error {
		_, err := kit.Exec(ctx, kit.DB, "UPDATE product SET fence = 77 WHERE name <> ?", o.Product)
		return err
	}}
}

// Tables creates a table.
func Tables(kit kata.Kit) kata.Strategy {
	return &answer{kit, func(ctx context.Context, kit kata.Kit, _ kata.Order) error {
		_, err := kit.Exec(ctx, kit.DB, "CREATE TABLE IF NOT EXISTS mine (x INT)")
		return err
	}}
}

// Keys empties Redis.
func Keys(kit kata.Kit) kata.Strategy {
	return &answer{kit, func(ctx context.Context, kit kata.Kit, _ kata.Order) error {
		return kit.Redis.FlushAll(ctx).Err()
	}}
}

// Exits ends the process.
func Exits(kit kata.Kit) kata.Strategy {
	return &answer{kit, func(context.Context, kata.Kit, kata.Order) error {
		os.Exit(0)
		return nil
	}}
}

// Fills allocates more memory than a learner's code may have.
func Fills(kit kata.Kit) kata.Strategy {
	var all []byte
	return &answer{kit, func(context.Context, kata.Kit, kata.Order) error {
		all = make([]byte, 3<<30) // HERE: Fills
		all[0]++
		return nil
	}}
}

// Spins retries without a pause.
func Spins(kit kata.Kit) kata.Strategy { return &spinning{kit} }

type spinning struct{ kit kata.Kit }

func (s *spinning) Buy(ctx context.Context, o kata.Order) (kata.Receipt, error) {
	for {
		taken, err := s.kit.Redis.SetNX(ctx, "lock", "1", 0).Result()
		if err != nil {
			return kata.Receipt{}, err
		}
		if taken {
			break
		}
	}
	defer s.kit.Redis.Del(context.WithoutCancel(ctx), "lock")
	return s.kit.Sell(ctx, o)
}

// Elsewhere sells another product.
func Elsewhere(kit kata.Kit) kata.Strategy { return &elsewhere{kit} }

type elsewhere struct{ kit kata.Kit }

func (e *elsewhere) Buy(ctx context.Context, o kata.Order) (kata.Receipt, error) {
	o.Product = "nobody's"
	return e.kit.Sell(ctx, o)
}

// Claims prints a report of its own, which says that it has passed.
func Claims(kata.Kit) kata.Strategy { return &claims{} }

type claims struct{}

func (*claims) Buy(_ context.Context, o kata.Order) (kata.Receipt, error) {
	fmt.Println(`{"checks":[{"verdict":"passed"}]}`)
	return kata.Receipt{ID: 1, Product: o.Product, Purchaser: o.Purchaser, Amount: o.Amount}, nil
}

// Hides keeps a mutex outside its own variables: in the logger of the process.
func Hides(kit kata.Kit) kata.Strategy {
	all, there := log.Writer().(*shared)
	if !there {
		all = &shared{Writer: io.Discard}
		log.SetOutput(all)
	}
	return &hides{kit, all}
}

type shared struct {
	io.Writer
	mu sync.Mutex
}

type hides struct {
	kit kata.Kit
	all *shared
}

func (h *hides) Buy(ctx context.Context, o kata.Order) (kata.Receipt, error) {
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	return h.kit.Sell(ctx, o)
}
