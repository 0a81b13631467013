package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/teach/live/runs"
	"github.com/oversell/oversell/internal/web"
)

// A Stage sends the rushes that users start on the live page. It runs the same rush as `shop rush`, on child
// processes that use the servers of this shop. This process cannot serve the buyers itself: it has a sold-out
// check and admission control, and a fault cannot kill it.
type Stage struct {
	Engine *engine.Engine
	Shops  web.Config
	Conns  int // default number of a shop's database connections
}

func (s Stage) rush(r runs.Request) *Crowd {
	o := &Crowd{
		Strategies: r.Strategies, Product: r.Product, Stock: r.Stock, Buyers: r.Buyers, Processes: r.Processes,
		Restocks: 1, Units: []int64{1}, Expect: true, Fault: promise.Condition(r.Fault),
		Shops: web.Config{Settings: s.Shops.Settings, MaxInflight: s.Shops.MaxInflight},
	}
	o.StrikeTimes()
	return o
}

// Check implements runs.Sender.
func (s Stage) Check(r *runs.Request) error {
	if err := product.CheckForSale(r.Product); err != nil {
		return err
	}
	o := s.rush(*r)
	err := o.Check()
	if err == nil {
		err = o.CheckNames()
	}
	if err == nil {
		err = o.CheckFault()
	}
	var flag *FieldError
	if errors.As(err, &flag) {
		return fmt.Errorf("%s %s", cmp.Or(map[string]string{"strategy": "strategies"}[flag.Name], flag.Name), flag.Says)
	}
	if err != nil {
		return err
	}
	bed := &Storefront{}
	if _, err := o.on(bed, s.Engine); err != nil {
		return err
	}
	if err := canStrike(o, s.Engine); err != nil {
		return err
	}
	r.Strategies, err = o.Names(bed)
	r.Spared = bed.Unused
	return err
}

// Command implements runs.Sender. It leaves out flags with their default value.
func (s Stage) Command(r runs.Request) string {
	urls, settings, preset := s.Engine.URLs, s.Shops.Settings, lockstrategy.DefaultSettings()
	line := fmt.Sprintf("shop rush%s --strategy %s --stock %d --buyers %d --processes %d --expect",
		engine.Flags(s.Engine.Name, urls.LocalDB, urls.LocalRedis), strings.Join(r.Strategies, ","), r.Stock, r.Buyers, r.Processes)
	conns := urls.Conns
	if dialect.Kind(s.Engine.Database) == dialect.SQLite { // SQLite ignores the number of connections
		conns = s.Conns
	}
	if r.Fault != "" { // under a fault, StrikeTimes sets wait and lease
		settings.Wait, settings.LeaseTTL = preset.Wait, preset.LeaseTTL
	}
	for _, f := range []struct {
		name       string
		is, preset any
	}{
		{"product", r.Product, purchase.DefaultProduct},
		{"strike", r.Fault, ""},
		{"wait", settings.Wait, preset.Wait},
		{"lease", settings.LeaseTTL, preset.LeaseTTL},
		{"poll", settings.Poll, preset.Poll},
		{"redis-wait", settings.Replicas, preset.Replicas},
		{"db-conns", conns, s.Conns},
	} {
		if f.is != f.preset {
			line += fmt.Sprintf(" --%s %s", f.name, ShellWord(fmt.Sprint(f.is)))
		}
	}
	return line
}

// plainWord matches a word that needs no quotes in a shell.
var plainWord = regexp.MustCompile(`^[a-zA-Z0-9./][a-zA-Z0-9._/=-]*$`)

// ShellWord quotes a word for a shell.
func ShellWord(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Faults implements runs.Sender.
func (s Stage) Faults() (list []runs.Fault) {
	for _, f := range fault.OnEngine(s.Engine) {
		list = append(list, runs.Fault{Name: string(f.Name), About: f.About})
	}
	return list
}

// CheckFault implements runs.Sender.
func (s Stage) CheckFault(name string) error {
	o := &Crowd{Fault: promise.Condition(name)}
	if err := o.CheckFault(); err != nil {
		return err
	}
	f, ok := struckBy(o.Fault)
	if !ok {
		return errors.New(`fault needs a name such as "crash"`)
	}
	return onEngine(f, s.Engine)
}

// Send implements runs.Sender.
func (s Stage) Send(ctx context.Context, r runs.Request, to *runs.Recorder) (report rush.Report, err error) {
	o, bed := s.rush(r), &Storefront{}
	flags, err := o.on(bed, s.Engine)
	if err != nil {
		return report, err
	}
	crowds := newCrowds(ctx, s.Engine, o, bed, to)
	defer func() { err = errors.Join(err, bed.Close()) }()
	if err := bed.ServeChildren(ctx, s.Engine, flags, r.Processes, crowds.record); err != nil {
		return report, err
	}
	report = o.Report(bed)
	report.LeftOut = append(report.LeftOut, r.Spared...)
	strikes, ended := context.WithCancel(ctx)
	var striking sync.WaitGroup
	striking.Go(func() { crowds.strikeWhenAsked(strikes, to.Strikes) })
	defer func() { ended(); striking.Wait(); crowds.tooLate() }()
	for _, name := range r.Strategies {
		to.Begin(name)
		result, err := crowds.send(ctx, o, name, Watching{Judged: to.Judged})
		if err != nil {
			return report, fmt.Errorf("%s: %w", name, err)
		}
		to.Ended(result)
		report.Results = append(report.Results, result)
	}
	return report, nil
}
