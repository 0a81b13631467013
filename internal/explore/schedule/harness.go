package schedule

import (
	"errors"
	"time"
)

// ErrHarness: the exploration itself went wrong, and its result means nothing.
var ErrHarness = errors.New("the explorer lost control of the run")

// ErrDivergence is a replay divergence: the schedule is not one of this strategy
// or database, or the server took another course.
var ErrDivergence = errors.New("the schedule does not fit")

// HangTimeout bounds the wait for what must come. It decides no step: when it is
// over the run is a harness error.
const HangTimeout = 30 * time.Second

// Forever is longer than any run: what runs out by the clock does so by an event
// of the schedule.
const Forever = time.Hour

// MaxSteps ends a schedule that goes round in circles.
const MaxSteps = 400
