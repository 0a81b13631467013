package measure

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/judge/trial"
	"github.com/oversell/oversell/internal/load/sizing"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/product/stock"
	"github.com/oversell/oversell/internal/testbed"
	"github.com/oversell/oversell/internal/web"
)

// maxProducts is the number of products of a bed.
const maxProducts = 1000

// A Bed has the servers of a measurement. Its products never sell out.
type Bed struct {
	Engine  *engine.Engine
	Missing map[string]string // unavailable strategies, with the reason
	records int64             // records that fill has added to purchase_history
}

// OpenBed opens an engine and puts products on sale. Close ends the engine.
func OpenBed(ctx context.Context, config engine.Config) (*Bed, error) {
	e, err := engine.Open(ctx, config)
	if err != nil {
		return nil, err
	}
	b := &Bed{Engine: e, Missing: lockstrategy.AllMissing(onengine.Deps(e))}
	rows := make([]string, maxProducts)
	for n, name := range b.Products(maxProducts) {
		rows[n] = fmt.Sprintf("('%s', 0, 0)", name)
	}
	err = e.Admin.WithContext(ctx).Exec("INSERT INTO product (name, amount, stocked) VALUES " + strings.Join(rows, ", ")).Error
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return b, nil
}

// Close ends the engine.
func (b *Bed) Close() error { return b.Engine.Close() }

// Products returns the names of the first n products.
func (b *Bed) Products(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("product-%04d", i)
	}
	return names
}

// Restock prepares the bed for the next strategy. It deletes all locks, since one without a TTL may
// still be held, and resets the fence, since each strategy may count its tokens from another start.
func (b *Bed) Restock(ctx context.Context) error {
	for _, locks := range append([]redis.UniversalClient{b.Engine.Redis}, b.Engine.Redlock...) {
		if err := locks.FlushDB(ctx).Err(); err != nil {
			return err
		}
	}
	admin := b.Engine.Admin.WithContext(ctx)
	if err := stock.ClearAll(admin); err != nil {
		return err
	}
	return admin.Exec("UPDATE product SET amount = 900000000, stocked = 900000000, fence = 0").Error
}

// fill adds records to purchase_history, spread over all products, up to the given number.
func (b *Bed) fill(ctx context.Context, records int64) error {
	const chunk = 500_000
	for ; b.records < records; b.records += chunk {
		err := b.Engine.Admin.WithContext(ctx).Exec(fmt.Sprintf(`INSERT INTO purchase_history
			(product_name, purchaser, purchase_time, amount, strategy, idempotency_key, left_after, waited_ms)
			SELECT CONCAT('product-', LPAD(seq %% %d, 4, '0')), CONCAT('buyer-', seq), NOW(6), 1, 'filled', NULL, 0, 0
			FROM seq_1_to_%d`, maxProducts, min(chunk, records-b.records))).Error
		if err != nil {
			return fmt.Errorf("fill purchase_history: %w", err)
		}
	}
	b.records = records
	return nil
}

// canFill reports whether fill works: it needs MariaDB's sequence engine.
func (b *Bed) canFill() bool {
	return dialect.Kind(b.Engine.Database) == dialect.MySQL && strings.Contains(b.Engine.Server, "MariaDB")
}

// nodes returns the number of database hosts in the shops' URL.
func (b *Bed) nodes() int {
	hosts := hostPort.FindAllString(b.Engine.URLs.DB, -1)
	slices.Sort(hosts)
	return max(1, len(slices.Compact(hosts)))
}

// writers returns the number of nodes that shops write to.
func (b *Bed) writers() int {
	if strings.Contains(b.Engine.URLs.DB, "writers=one") {
		return 1
	}
	return b.nodes()
}

// hostPort matches the address of a private server.
var hostPort = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// Shops has the shop processes on a bed.
type Shops struct {
	*trial.Storefront
	asker *engine.Engine // connected in the same way as the shops
}

// Serve starts shops. Each answer of their servers is delayed by delay.
func (b *Bed) Serve(ctx context.Context, flags web.Config, processes int, delay time.Duration) (_ *Shops, err error) {
	s := &Shops{Storefront: &trial.Storefront{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	e := *b.Engine
	if delay > 0 {
		if err := s.delayed(&e.URLs, delay); err != nil {
			return nil, err
		}
	}
	if err := s.ServeChildren(ctx, &e, flags, processes, nil); err != nil {
		return nil, err
	}
	e.URLs.Conns = 2
	if s.asker, err = engine.Open(ctx, e.URLs); err != nil {
		return nil, err
	}
	s.OnClose(s.asker.Close)
	return s, nil
}

// delayed routes each address through its own proxy.
func (s *Shops) delayed(urls *engine.Config, delay time.Duration) (err error) {
	proxies := map[string]string{}
	through := func(text string) string {
		return hostPort.ReplaceAllStringFunc(text, func(server string) string {
			if proxies[server] == "" && err == nil {
				var link *testbed.Link
				if link, err = testbed.NewLink(server); err == nil {
					s.OnClose(func() error { link.Cut(); return nil })
					proxies[server], err = link.Addr, link.Delay(delay, 0)
				}
			}
			return proxies[server]
		})
	}
	each := func(all []string) []string {
		all = slices.Clone(all)
		for i := range all {
			all[i] = through(all[i])
		}
		return all
	}
	urls.DB, urls.Redis = through(urls.DB), through(urls.Redis)
	urls.Redlock, urls.Zookeeper, urls.Etcd = each(urls.Redlock), each(urls.Zookeeper), each(urls.Etcd)
	return err
}

// ask measures the present answer times of the servers.
func (s *Shops) ask(ctx context.Context) (sizing.Servers, error) {
	db, err := s.asker.DB.DB()
	if err != nil {
		return sizing.Servers{}, err
	}
	return Ask(ctx, db, s.asker.Redis)
}
