package main

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
	"github.com/oversell/oversell/internal/load/sizing/measure"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/product/stock"
	"github.com/oversell/oversell/internal/testbed"
	"github.com/oversell/oversell/internal/web"
)

// maxProducts is how many products a bed puts on sale.
const maxProducts = 1000

// A sizeBed is servers on which points are measured. The products have stock without end.
type sizeBed struct {
	engine  *engine.Engine
	missing map[string]string // strategies that cannot run here, and why
	records int64             // in purchase_history that fill has put there
}

func openSizeBed(ctx context.Context, config engine.Config) (*sizeBed, error) {
	e, err := engine.Open(ctx, config)
	if err != nil {
		return nil, err
	}
	b := &sizeBed{engine: e, missing: lockstrategy.AllMissing(onengine.Deps(e))}
	rows := make([]string, maxProducts)
	for n, name := range b.products(maxProducts) {
		rows[n] = fmt.Sprintf("('%s', 0, 0)", name)
	}
	err = e.Admin.WithContext(ctx).Exec("INSERT INTO product (name, amount, stocked) VALUES " + strings.Join(rows, ", ")).Error
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return b, nil
}

func (b *sizeBed) close() error { return b.engine.Close() }

// products are the names of the first n.
func (b *sizeBed) products(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("product-%04d", i)
	}
	return names
}

// restock is for the next strategy: its fencing tokens may come from another source, and a
// lock without a time to live outlives the shops of the setting before.
func (b *sizeBed) restock(ctx context.Context) error {
	for _, locks := range append([]redis.UniversalClient{b.engine.Redis}, b.engine.Redlock...) {
		if err := locks.FlushDB(ctx).Err(); err != nil {
			return err
		}
	}
	admin := b.engine.Admin.WithContext(ctx)
	if err := stock.ClearAll(admin); err != nil {
		return err
	}
	return admin.Exec("UPDATE product SET amount = 900000000, stocked = 900000000, fence = 0").Error
}

// fill brings purchase_history to that many records, spread over all products.
func (b *sizeBed) fill(ctx context.Context, records int64) error {
	const chunk = 500_000
	for ; b.records < records; b.records += chunk {
		err := b.engine.Admin.WithContext(ctx).Exec(fmt.Sprintf(`INSERT INTO purchase_history
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

// canFill: the records come from MariaDB's sequence engine.
func (b *sizeBed) canFill() bool {
	return dialect.Kind(b.engine.Database) == dialect.MySQL && strings.Contains(b.engine.Server, "MariaDB")
}

// nodes is how many of the database's hosts the shops are told of.
func (b *sizeBed) nodes() int {
	hosts := hostPort.FindAllString(b.engine.URLs.DB, -1)
	slices.Sort(hosts)
	return max(1, len(slices.Compact(hosts)))
}

// writers are those of the nodes that shops write to.
func (b *sizeBed) writers() int {
	if strings.Contains(b.engine.URLs.DB, "writers=one") {
		return 1
	}
	return b.nodes()
}

// hostPort is how private servers are addressed.
var hostPort = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// sizeShops are shop processes on a bed.
type sizeShops struct {
	*trial.Storefront
	asker *engine.Engine // connected as the shops are
}

// serve starts so many shops, whose servers answer later by delay.
func (b *sizeBed) serve(ctx context.Context, flags web.Config, processes int, delay time.Duration) (_ *sizeShops, err error) {
	s := &sizeShops{Storefront: &trial.Storefront{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	e := *b.engine
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

// delayed leads every address through a proxy of its own.
func (s *sizeShops) delayed(urls *engine.Config, delay time.Duration) (err error) {
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

// ask measures how the servers answer now.
func (s *sizeShops) ask(ctx context.Context) (sizing.Servers, error) {
	db, err := s.asker.DB.DB()
	if err != nil {
		return sizing.Servers{}, err
	}
	return measure.Ask(ctx, db, s.asker.Redis)
}
