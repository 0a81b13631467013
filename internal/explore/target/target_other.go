//go:build !linux

package target

import (
	"context"
	"time"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/process"
	"github.com/oversell/oversell/internal/explore/schedule"
)

// A Runner needs Linux. New always fails here, so its methods are never called.
type Runner struct{ schedule.Runner }

// New returns an error which says that programs can be explored only on Linux.
func New(context.Context, Spec) (*Runner, error) {
	_, err := process.NewNetwork()
	return nil, err
}

func (*Runner) Check(context.Context) (Check, error)                         { return Check{}, nil }
func (*Runner) Footprint(context.Context, Alone) (f Footprint, err error)    { return f, nil }
func (*Runner) Next(context.Context, []app.Request) (*Runner, error)         { return nil, nil }
func (*Runner) Anew()                                                        {}
func (*Runner) Rush(context.Context, int, int, func(Crowd)) ([]Crowd, error) { return nil, nil }
func (*Runner) Watch(time.Duration)                                          {}
func (*Runner) Printed() string                                              { return "" }
func (*Runner) Racing() string                                               { return "" }
func (*Runner) Close() error                                                 { return nil }
