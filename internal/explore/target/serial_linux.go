package target

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/target/client"
	"github.com/oversell/oversell/internal/explore/target/oracle"
	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// A serialOracle judges runs if oversell.yaml has no rules. A run must end as a serial run does: the buyers come one
// after the other, in some order. Package oracle compares them.
type serialOracle struct {
	*oracle.Oracle
	app     *app.App
	reader  *oracle.Reader
	reset   oracle.Data     // data after reset, before any buyer
	touched map[string]bool // tables that a serial run changes or that its commands name
	aged    map[string]bool // by list of places that differ, such as items.stock: a serial run was already repeated for it, see age
	ended   *oracle.Run     // the end of the last judged run
	struck  bool            // an event, such as a crash, was injected in that run
	differs *oracle.Difference

	unmatched []string // entries of `except` in oversell.yaml that match nothing
}

// newSerialOracle reads the data right after reset. If the rules of `never` judge the runs, or if there is only one
// buyer, it returns nil.
func newSerialOracle(ctx context.Context, x *Runner) (*serialOracle, error) {
	if !x.programs.App.Serial || len(x.programs.App.Buyers) < 2 {
		return nil, nil
	}
	reader, err := oracle.Open(ctx, x.programs.Servers)
	if err != nil {
		return nil, err
	}
	o := &serialOracle{app: x.programs.App, reader: reader, touched: map[string]bool{}, aged: map[string]bool{}}
	if o.reset, err = reader.Read(ctx, nil); err != nil {
		return nil, err
	}
	o.Oracle = oracle.New(o.reset, x.programs.App.Except)
	if len(x.programs.App.Before) == 0 {
		return o, nil
	}
	if err := x.programs.Reset(ctx); err != nil {
		return nil, err
	}
	again, err := reader.Read(ctx, nil)
	if err == nil {
		o.Renewed(again)
	}
	return o, err
}

// apart is the minimum time between two runs of one order. Then times differ even if they are rounded to a second.
const apart = 2100 * time.Millisecond

// learn runs the buyers, and each subset of them, in every order. It returns the number of orders. It runs the orders
// of all buyers twice, in different seconds, to find the values that depend on the clock or on chance.
func (o *serialOracle) learn(ctx context.Context, x checker) (orders int, _ error) {
	if err := x.programs.Reset(ctx); err != nil {
		return 0, err
	}
	again, err := o.reader.Read(ctx, nil)
	if err != nil {
		return 0, err
	}
	unrestored := o.Unrestored(again)
	all := oracle.Orders(len(x.programs.App.Buyers))
	var whole time.Time // end of the last order of all buyers
	for _, order := range all {
		if err := o.run(ctx, x, order); err != nil {
			return 0, err
		}
		if len(order) == len(x.programs.App.Buyers) {
			whole = time.Now()
		}
	}
	time.Sleep(time.Until(whole.Add(apart)))
	for _, order := range all {
		if len(order) < len(x.programs.App.Buyers) {
			break
		}
		if err := o.run(ctx, x, order); err != nil {
			return 0, err
		}
	}
	maps.DeleteFunc(unrestored, func(name string, _ []string) bool { return !o.names(name) })
	if tables := slices.Sorted(maps.Keys(unrestored)); len(tables) > 0 {
		var places []string
		for _, name := range tables {
			places = append(places, unrestored[name]...)
		}
		return 0, fmt.Errorf("reset does not restore %s, which a buyer uses, so the ends of two runs cannot be compared: add a statement to reset, or except: [%s] to the file", strings.Join(tables, ", "), strings.Join(places, ", "))
	}
	for _, name := range o.reader.Large {
		if o.names(name) && !slices.Contains(x.programs.App.Except, name+".*") {
			return 0, fmt.Errorf("%s, which a buyer uses, has more than %d rows, too many to compare after each run: start with fewer, or add except: [%s.*] to the file, or rules in never", name, oracle.MostRows, name)
		}
	}
	none := o.Unmatched(x.programs.App.Except)
	if o.unmatched = none; len(none) > 0 && !x.programs.App.Scanned { // the scan tries pairs of requests; the entry may belong to another pair
		return 0, fmt.Errorf("except: %s names no table.column, no table.* and no place in an answer; --app-check shows the statements, and the body of an answer is body /path", none[0])
	}
	o.Only(o.names)
	if err := o.Settle(); err != nil {
		return 0, fmt.Errorf("%w: add `except:` with what may differ to the file, or `never:` with rules", err)
	}
	return len(all), nil
}

// run runs the buyers one after the other, in the given order, and records the resulting data and answers.
func (o *serialOracle) run(ctx context.Context, x checker, order []int) error {
	end := oracle.Run{Answers: map[int]oracle.Answer{}}
	err := x.inTurn(ctx, order, func(a *Alone, reply client.Reply, failed error) {
		end.Answers[a.Buyer] = answerOf(reply, failed != nil, o.app)
		for _, e := range a.answers {
			o.mentioned(e.server, e.command)
		}
	})
	if err != nil {
		return err
	}
	if end.Data, err = o.reader.Read(ctx, nil); err != nil {
		return err
	}
	for name, t := range end.Data {
		if before := o.reset[name]; before == nil || !slices.EqualFunc(t.Rows, before.Rows, slices.Equal) {
			o.touched[name] = true
		}
	}
	o.Add(order, end)
	return nil
}

func answerOf(reply client.Reply, lost bool, a *app.App) oracle.Answer {
	return oracle.Answer{Lost: lost, No: a.Refused.Has(reply.Status, reply.Body), Status: reply.Status, Body: reply.Body}
}

func (o *serialOracle) mentioned(server, text string) {
	if d, sql := effect.DialectOf(server); sql {
		for _, table := range effect.Relations(text, d) {
			o.touched[strings.ToLower(table)] = true
		}
	}
}

// names reports whether a serial run changes the table, or has a command that names it.
func (o *serialOracle) names(table string) bool {
	_, name, _ := strings.Cut(table, ".") // without its schema
	return o.touched[table] || o.touched[strings.ToLower(table)] || o.touched[strings.ToLower(name)]
}

// judge returns a finding if no serial run ended like this run, and otherwise nil. The result `early` reports whether a
// buyer was refused while a unit was left. With `strict`, such a refusal is a finding instead, unless the explorer has
// injected an event.
func (o *serialOracle) judge(ctx context.Context, buyers *client.Buyers, struck bool) (_ []witness.Finding, early bool, err error) {
	o.ended = &oracle.Run{Answers: map[int]oracle.Answer{}}
	for _, b := range buyers.All {
		reply, answered, err := buyers.Answer(b)
		o.ended.Answers[b.ID] = answerOf(reply, !answered || err != nil, o.app)
	}
	if o.ended.Data, err = o.reader.Read(ctx, o.names); err != nil {
		return nil, false, err
	}
	o.struck = struck
	return o.found()
}

func (o *serialOracle) found() (_ []witness.Finding, early bool, err error) {
	var refused []int
	if o.differs, refused, err = o.Judge(*o.ended); err != nil {
		return nil, false, err
	}
	early = len(refused) > 0 && !o.struck // after an event, a refusal may be the only possible answer
	switch d := o.differs; {
	case d != nil:
		f := witness.Finding{
			Title:   "equals no order of the buyers, one after the other; nearest: " + d.String(),
			Columns: []string{"where", "this run", "one after the other"},
		}
		if places := d.Places(); !slices.Contains(places, "status") { // a different status of the answer cannot be excepted
			f.Remedy = "if that may differ, add to the file: except: [" + strings.Join(quoted(places), ", ") + "]"
		}
		for _, w := range d.Rows {
			f.Rows = append(f.Rows, []string{w.Table, w.This, w.Serial})
		}
		return []witness.Finding{f}, false, nil
	case early && o.app.Strict:
		f := witness.Finding{Title: "refused while a unit was left", Columns: []string{"where", "this run", "one after the other"}}
		for _, b := range refused {
			f.Rows = append(f.Rows, []string{"answer", fmt.Sprintf("buyer %d status %d", b, o.ended.Answers[b].Status), fmt.Sprintf("buyer %d is served", b)})
		}
		return []witness.Finding{f}, false, nil
	}
	return nil, early, nil
}

// plain matches an entry that a YAML list can contain without quotes.
var plain = regexp.MustCompile(`^[\w.*/-]+(?:[: ]?[\w.*/-]+)*$`)

// quoted returns entries as text for a YAML list.
func quoted(entries []string) (all []string) {
	for _, e := range entries {
		if !plain.MatchString(e) {
			e = "'" + strings.ReplaceAll(e, "'", "''") + "'"
		}
		all = append(all, e)
	}
	return all
}

// age checks for values that depend on the time of the run. If the last run differs from the nearest serial run only in
// numbers, age repeats that serial run, once for each set of differing places. Then values that differ between these
// two serial runs are no longer compared. The programs restart first, since a race may have left data in their memory.
func (o *serialOracle) age(ctx context.Context, x checker, e *schedule.Ended) error {
	d := o.differs
	o.differs = nil
	if e.Verdict != verdict.Broken || d == nil || !d.MayAge() {
		return nil
	}
	places := d.Places()
	key := strings.Join(places, " ")
	if o.aged[key] || slices.Contains(places, "status") {
		return nil
	}
	o.aged[key] = true
	x.recovery.Anew()
	err := o.run(ctx, x, d.Order)
	o.Only(o.names)
	if err != nil || o.Settle() != nil { // the difference stays in the report, and the user decides
		return ctx.Err()
	}
	e.Uncompared = o.LeftOut()
	if e.Findings, e.Early, err = o.found(); err != nil || len(e.Findings) > 0 {
		return err
	}
	e.Verdict, e.Why = verdict.Holds, ""
	return nil
}
