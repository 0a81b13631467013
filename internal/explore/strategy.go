package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/explore/own"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// OfStrategy is the part of Config for strategies of the catalogue.
type OfStrategy struct {
	Engine   *engine.Engine // used only by this exploration
	Strategy lockstrategy.Entry
	Stock    int64     // units on sale
	Units    Units     // units that each buyer asks for, 1 to MaxBuyers
	Parts    int64     // number of rows into which the stock is divided evenly; 0: the product's own row
	Product  string    // its records of sales are deleted before each schedule
	OneKey   bool      // all purchases have the same Idempotency-Key header
	Before   own.Front // the part of the shop that runs before the strategy; "": none
}

type strategyMode struct{ Config }

func (m strategyMode) name() string { return m.Strategy.Name }

func (m strategyMode) check() error {
	c := m.Config
	switch {
	case slices.ContainsFunc(c.Units, func(n int64) bool { return n < 1 || n > int64(MaxBuyers) }):
		return fmt.Errorf("--units must be between 1 and %d (got %s)", MaxBuyers, c.Units)
	case len(c.Units) > c.Buyers:
		return fmt.Errorf("--units must have at most one number per buyer (got %d for %d buyers)", len(c.Units), c.Buyers)
	case c.Stock < 1 || c.Stock > int64(MaxBuyers):
		return fmt.Errorf("--stock must be between 1 and %d (got %d)", MaxBuyers, c.Stock)
	case c.leastUnits() > c.Stock:
		return fmt.Errorf("--stock must be enough for one order (got --units %s and --stock %d)", c.Units, c.Stock)
	case c.Parts < 0 || c.Parts > int64(MaxBuyers):
		return fmt.Errorf("--parts must be between 0 and %d (got %d)", MaxBuyers, c.Parts)
	case c.Parts > 0 && c.Strategy.Left == nil:
		return fmt.Errorf("--parts cannot be combined with strategy %s, which takes units only from the product's own row", c.Strategy.Name)
	}
	if err := c.checkEvents(); err != nil {
		return err
	}
	if err := c.Before.Check(c.Shared); err != nil {
		return fmt.Errorf("--before: %w", err)
	}
	if why := Ungated(c.Strategy); why != "" {
		return fmt.Errorf("strategy %s: %s", c.Strategy.Name, why)
	}
	return nil
}

func (m strategyMode) schedule(tokens []string) Schedule {
	return Schedule{Strategy: m.name(), Buyers: m.Buyers, Stock: m.Stock, Units: m.Units, Parts: m.Parts, Shared: m.Shared, OneKey: m.OneKey, Tokens: tokens}
}

func (m strategyMode) stocked(s Schedule) bool {
	return s.Stock == m.Stock && s.Units.String() == m.Units.String() && s.Parts == m.Parts && s.OneKey == m.OneKey
}

func (m strategyMode) merges() bool { return !m.Full && !m.Overlap } // the server decides the result of a concurrent pair, so a state does not determine the next states

func (m strategyMode) diverged(details string) error {
	return fmt.Errorf("%w: %w: %s", ErrHarness, schedule.ErrUnrepeated, details)
}

func (m strategyMode) hint(err error) error {
	return fmt.Errorf("%w; a replay needs the servers of the search: give the same --engine and --local-db", err)
}

func (m strategyMode) violations(s *search) violations { return ownViolations{s} }

func (m strategyMode) origin(r *Report) {
	r.Engine, r.Server = m.Engine.Name, m.Engine.Server
	r.again = command(m.name(), engine.Flags(m.Engine.Name, m.Engine.URLs.LocalDB, m.Engine.URLs.LocalRedis))
	if r.Before = m.Before; r.Before != "" {
		r.again += " --before " + string(r.Before)
	}
}

// ownViolations keeps the best violation of a strategy. The explorer never loses control of a strategy, so it discards
// no run.
type ownViolations struct{ s *search }

func (v ownViolations) begin(bool)                  {}
func (v ownViolations) doubt()                      {}
func (v ownViolations) ended(schedule.Ended)        {}
func (v ownViolations) rank(e schedule.Ended)       { v.s.best = v.s.best.better(e) }
func (v ownViolations) isLate(context.Context) bool { return false }

// spent implements violations. It lets at least one schedule run.
func (v ownViolations) spent() bool {
	budget := v.s.x.config.Budget
	return v.s.result.Runs > 0 && budget > 0 && time.Since(v.s.begun) > budget
}

func (v ownViolations) show(ctx context.Context) (err error) {
	ctx = context.WithoutCancel(ctx)
	s := v.s
	if s.result.Violations > 0 && !s.result.Complete && !s.final {
		if s.best, err = s.best.shrink(ctx, s); err != nil {
			return err
		}
	}
	var failed [2]error
	s.result.Witness, failed[0] = s.best.witness(ctx, s.x)
	s.result.ForeignWitness, failed[1] = s.foreign.witness(ctx, s.x)
	return errors.Join(failed[0], failed[1])
}
