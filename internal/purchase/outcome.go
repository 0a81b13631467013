package purchase

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/engine/sqlerror"
	"github.com/oversell/oversell/internal/product"
)

// An Outcome is how one buy ended.
type Outcome string

const (
	Sold     Outcome = "sold"
	SoldOut  Outcome = "sold_out"
	Busy     Outcome = "busy"      // gave up waiting or retrying
	LockLost Outcome = "lock_lost" // the lease was lost before the write; nothing was written
	Unknown  Outcome = "unknown"   // no answer to the COMMIT, so it may have been sold or not
	Failed   Outcome = "failed"
)

// Outcomes lists the outcomes in display order.
func Outcomes() []Outcome {
	return []Outcome{Sold, SoldOut, Busy, LockLost, Unknown, Failed}
}

// Each outcome except sold and failed has one sentinel error.
var (
	ErrSoldOut        = errors.New("sold out")
	ErrBusy           = errors.New("gave up waiting")
	ErrLockLost       = errors.New("the lock was lost before the write")
	ErrUnknownOutcome = errors.New("the outcome of the commit is not known")
	ErrNoProduct      = product.ErrNotFound

	// ErrKeyReused: the Idempotency-Key belongs to a sale of a different order.
	ErrKeyReused = errors.New("the Idempotency-Key was used for a different order")
)

// Unavailable says that a server which the buy needs did not answer. Nothing was sold.
type Unavailable struct {
	Server string // "database", "redis", "redlock", ...
	Err    error
}

func (e *Unavailable) Error() string { return "the " + e.Server + " is down: " + e.Err.Error() }

func (e *Unavailable) Unwrap() error { return e.Err }

// OutcomeOf returns the outcome for an error of Strategy.Buy.
func OutcomeOf(err error) Outcome {
	switch {
	case err == nil:
		return Sold
	case errors.Is(err, ErrUnknownOutcome): // checked first, since it may wrap one of the other errors
		return Unknown
	case errors.Is(err, ErrSoldOut):
		return SoldOut
	case errors.Is(err, ErrLockLost):
		return LockLost
	case errors.Is(err, ErrBusy):
		return Busy
	}
	return Failed
}

// DatabaseError classifies the error of a statement. It returns ErrBusy for a deadlock or a lock wait that
// timed out, and *Unavailable for a server that is down. If the context ended the statement, it returns the
// context's cause, although drivers report a broken connection then. It returns nil for nil.
func DatabaseError(ctx context.Context, operation string, err error) error {
	var down *Unavailable
	if err == nil || errors.As(err, &down) { // the error already names another server
		return err
	}
	if cause := Ended(ctx); cause != nil {
		return fmt.Errorf("%s: %w", operation, cause)
	}
	switch sqlerror.KindOf(err) {
	case sqlerror.Contended:
		return fmt.Errorf("%s: %w: %w", operation, ErrBusy, err)
	case sqlerror.Down:
		return fmt.Errorf("%s: %w", operation, &Unavailable{Server: "database", Err: err})
	}
	return fmt.Errorf("%s: %w", operation, err)
}

// Ended returns the cause of ctx if it has ended or its deadline has passed, and nil otherwise.
func Ended(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		<-ctx.Done() // returns within moments: the timer of a network connection may end the call slightly before ctx is done
	}
	return context.Cause(ctx)
}
