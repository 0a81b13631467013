//go:build !linux

package target

import (
	"context"

	"github.com/oversell/oversell/internal/explore/process"
	"github.com/oversell/oversell/internal/explore/schedule"
)

// A Runner needs Linux.
type Runner struct{}

// New returns an error that says so.
func New(context.Context, Spec) (*Runner, error) {
	_, err := process.NewSpace()
	return nil, err
}

// Prepare and the other methods are never called.
func (*Runner) Prepare(context.Context) error        { return nil }
func (*Runner) Check(context.Context) (Check, error) { return Check{}, nil }
func (*Runner) Stated() bool                         { return false }
func (*Runner) Servers() string                      { return "" }
func (*Runner) Close() error                         { return nil }
func (*Runner) Rush(context.Context, int, int, func(Crowd)) ([]Crowd, error) {
	return nil, nil
}

func (*Runner) Run(context.Context, schedule.Chooser, bool) (schedule.Ended, error) {
	return schedule.Ended{}, nil
}
