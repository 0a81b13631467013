package main

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
)

// A stage sends the crowds of the live page: the rush of shop rush, behind which stand
// children of this shop on its servers. This shop itself would judge its sold-out check and
// its admission, too, and cannot be killed for it.
type stage struct {
	engine *engine.Engine
	flags  shopFlags
}

// rush is the command's for a request.
func (s stage) rush(r runs.Request) *rushOptions {
	o := &rushOptions{
		strategies: r.Strategies, product: r.Product, stock: r.Stock, buyers: r.Buyers, processes: r.Processes,
		restocks: 1, units: []int64{1}, expect: true, fault: promise.Condition(r.Fault), shops: s.flags,
	}
	o.shops.check, o.shops.admission, o.shops.hosts, o.shops.gather = false, noAdmission, nil, 0
	o.struckTimes()
	return o
}

// Check is runs.Sender.Check.
func (s stage) Check(r *runs.Request) error {
	if err := product.CheckForSale(r.Product); err != nil {
		return err
	}
	o := s.rush(*r)
	err := o.checkCrowd()
	if err == nil {
		err = o.checkOwn()
	}
	var flag *flagError
	if errors.As(err, &flag) {
		return fmt.Errorf("%s %s", cmp.Or(map[string]string{"strategy": "strategies"}[flag.name], flag.name), flag.says)
	}
	if err != nil {
		return err
	}
	bed := &storefront{}
	if _, err := o.on(bed, s.engine); err != nil {
		return err
	}
	if err := o.canStrike(s.engine); err != nil {
		return err
	}
	r.Strategies, err = o.names(bed)
	r.Spared = bed.unused
	return err
}

// Command is runs.Sender.Command: the flags that are not the command's own presets.
func (s stage) Command(r runs.Request) string {
	urls, settings, preset := s.engine.URLs, s.flags.settings, lockstrategy.DefaultSettings()
	line := fmt.Sprintf("shop rush%s --strategy %s --stock %d --buyers %d --processes %d --expect",
		engine.Flags(s.engine.Name, urls.LocalDB, urls.LocalRedis), strings.Join(r.Strategies, ","), r.Stock, r.Buyers, r.Processes)
	conns := urls.Conns
	if dialect.Kind(s.engine.Database) == dialect.SQLite { // which has as many as it takes, whatever is said
		conns = defaultConns
	}
	if r.Fault != "" { // which sets the times
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
		{"db-conns", conns, defaultConns},
	} {
		if f.is != f.preset {
			line += fmt.Sprintf(" --%s %s", f.name, shellWord(fmt.Sprint(f.is)))
		}
	}
	return line
}

// plainWord is one that a shell takes as it is.
var plainWord = regexp.MustCompile(`^[a-zA-Z0-9./][a-zA-Z0-9._/=-]*$`)

// shellWord is a word as a shell takes it.
func shellWord(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Faults is runs.Sender.Faults.
func (s stage) Faults() (list []runs.Fault) {
	for _, f := range fault.OnEngine(s.engine) {
		list = append(list, runs.Fault{Name: string(f.Name), About: f.AboutRush})
	}
	return list
}

// Send is runs.Sender.Send.
func (s stage) Send(ctx context.Context, r runs.Request, to *runs.Recorder) (report rush.Report, err error) {
	o, bed := s.rush(r), &storefront{}
	flags, err := o.on(bed, s.engine)
	if err != nil {
		return report, err
	}
	crowds := &crowds{engine: s.engine, rush: o, bed: bed, to: to, ctx: ctx}
	defer func() { err = errors.Join(err, bed.close()) }()
	if err := bed.serveChildren(ctx, s.engine, flags, r.Processes, crowds.record); err != nil {
		return report, err
	}
	report = o.report(bed)
	report.LeftOut = append(report.LeftOut, r.Spared...)
	strikes, ended := context.WithCancel(ctx)
	var striking sync.WaitGroup
	striking.Go(func() { crowds.strikeWhenAsked(strikes, to.Strikes) })
	defer func() { ended(); striking.Wait(); crowds.tooLate() }()
	for _, name := range r.Strategies {
		to.Begin(name)
		result, err := crowds.send(ctx, name, watching{judged: to.Judged})
		if err != nil {
			return report, fmt.Errorf("%s: %w", name, err)
		}
		to.Ended(result)
		report.Results = append(report.Results, result)
	}
	return report, nil
}
