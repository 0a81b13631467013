package purchase

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"golang.org/x/sync/semaphore"

	"github.com/oversell/oversell/internal/lockstrategy/keyed"
	"github.com/oversell/oversell/internal/nearest"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/web/problem"
)

// DefaultProduct is the product of a request that names none.
const DefaultProduct = "apple"

// Limits of GET /purchase_history.
const (
	DefaultPage = 100
	MaxPage     = 1_000
)

// SpanHeader is the header with the start and the end of a buy inside the shop, as START-END in microseconds
// of Unix time. From it, `shop rush` computes how many buys overlapped in all processes of one machine. The
// times at which `shop rush` sent the requests would not show that.
const SpanHeader = "Shop-Buy-Span"

// Counter receives the buys and passes them to the strategies. It limits the buys in flight. A restock can
// close it for one product.
type Counter struct {
	Strategies map[string]Strategy
	Missing    map[string]string        // strategies that cannot run here, and why
	Resolve    func(lock string) string // maps a value of ?lock= to a strategy's name
	History    func(ctx context.Context, productName string, after int64, limit int) ([]Record, error)
	Wait       time.Duration // how long a buy may take, except for its COMMIT
	// Down returns an error if the database, or another server that the strategy needs, does not
	// answer. It is called after a buyer's wait, to distinguish a silent server from a long queue.
	Down  func(ctx context.Context, strategy string) error
	Seats chan struct{} // its capacity is the maximum number of buys in flight
	Watch Watcher

	mu    sync.Mutex
	doors keyed.Map[string, *semaphore.Weighted] // by product: a buy passes through the door, and a restock closes it (allBuys)
}

// allBuys exceeds the number of buys in flight. The door of a product is a semaphore of this weight. Each buy
// holds a weight of 1 while it is in flight. A restock closes the door by taking the whole weight.
const allBuys = 1 << 40

// through runs fn while it holds the given weight of the product's door, the semaphore that allBuys describes.
func (k *Counter) through(ctx context.Context, productName string, weight int64, fn func() error) error {
	k.mu.Lock()
	door := k.doors.Use(productName, func() *semaphore.Weighted { return semaphore.NewWeighted(allBuys) })
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.doors.Release(productName)
	}()
	if err := door.Acquire(ctx, weight); err != nil {
		return fmt.Errorf("wait for a restock, or for the buys before it: %w", context.Cause(ctx))
	}
	defer door.Release(weight)
	return fn()
}

// A Watcher receives each buy, for metrics and the live page. The parameters `called` and `asked` are the
// times when the buy began and when it reached its strategy; `asked` is zero if it reached none. For a buy
// beyond the capacity of Seats, the Counter calls only TurnedAway.
type Watcher interface {
	Called(strategy string, o Order)
	Returned(strategy string, o Order, r Receipt, outcome Outcome, called, asked time.Time)
	TurnedAway(strategy string, o Order)
}

// Routes registers the routes of the buy and the history.
func (k *Counter) Routes(r gin.IRouter) {
	r.GET("/product/buy", k.buy)
	r.POST("/product/buy", k.buy)
	r.GET("/purchase_history", k.history)
}

// Closed runs fn, a restock, while this process has no buy of the product in flight. Buyers that arrive in
// the meantime wait. Otherwise a sale in progress would overwrite the restock.
//
// Closed returns ErrBusy if a buy of the product is still in flight 30 s after the end of Counter.Wait.
func (k *Counter) Closed(ctx context.Context, productName string, fn func() error) error {
	const long = 30 * time.Second
	ctx, cancel := context.WithTimeoutCause(ctx, k.Wait+long, fmt.Errorf("%w: a buy of the product has not returned %s after its wait was over", ErrBusy, long))
	defer cancel()
	return k.through(ctx, productName, allBuys, fn)
}

type receiptJSON struct {
	ID        int64  `json:"id"`
	Product   string `json:"product"`
	Purchaser string `json:"purchaser"`
	Amount    int64  `json:"amount"`
	Left      int64  `json:"left"`
	Strategy  string `json:"strategy"`
	WaitedMS  int64  `json:"waited_ms"`
}

func (k *Counter) buy(c *gin.Context) {
	order, name, lock, err := readOrder(c.Request) // before the buy takes one of the Seats, since a body may be slow
	if err != nil {
		WriteError(c, err)
		return
	}
	strategyName := k.Resolve(lock)
	strategy, ok := k.Strategies[strategyName]
	if !ok {
		k.refuse(c, strategyName)
		return
	}
	leave, err := k.seat(strategyName, order)
	if err != nil {
		WriteError(c, err)
		return
	}
	called := time.Now()
	receipt, err := func() (Receipt, error) {
		defer leave() // before holdUp delays a refusal, so that the delayed buyer occupies none of the Seats
		return k.sell(c.Request.Context(), strategyName, strategy, order)
	}()
	c.Header(SpanHeader, span(called, time.Now()))
	if err != nil {
		if !shared(name, c.Request.Header) && k.holdUp(c.Request.Context(), name, err) {
			c.Header("Connection", "close")
		}
		WriteError(c, err)
		return
	}
	c.JSON(http.StatusOK, receiptJSON{
		receipt.ID, receipt.Product, receipt.Purchaser, receipt.Amount, receipt.Left, receipt.Strategy, receipt.Waited.Milliseconds(),
	})
}

func span(called, returned time.Time) string {
	text := strconv.AppendInt(make([]byte, 0, 40), called.UnixMicro(), 10)
	return string(strconv.AppendInt(append(text, '-'), returned.UnixMicro(), 10))
}

// Sell sells to a buyer that does not use the route GET /product/buy, such as a phone in the classroom. Like
// that route, it takes one of the Seats and waits while the product is being restocked. It returns the error
// of Order.Check for an invalid order.
func (k *Counter) Sell(ctx context.Context, strategyName string, order Order) (Receipt, error) {
	if err := order.Check(); err != nil {
		return Receipt{}, fmt.Errorf("%w: %w", errInvalid, err)
	}
	strategy, ok := k.Strategies[strategyName]
	if !ok {
		return Receipt{}, fmt.Errorf("%w: strategy %q is not one that this shop can run", errInvalid, strategyName)
	}
	leave, err := k.seat(strategyName, order)
	if err != nil {
		return Receipt{}, err
	}
	defer leave()
	return k.sell(ctx, strategyName, strategy, order)
}

// seat takes one of the Seats, or returns ErrBusy if none is free.
func (k *Counter) seat(strategyName string, order Order) (leave func(), _ error) {
	select {
	case k.Seats <- struct{}{}:
		return func() { <-k.Seats }, nil
	default:
		k.Watch.TurnedAway(strategyName, order)
		return nil, fmt.Errorf("%w: %d buys are in flight, as many as --max-inflight allows", ErrBusy, cap(k.Seats))
	}
}

func (k *Counter) sell(ctx context.Context, name string, strategy Strategy, order Order) (Receipt, error) {
	called := time.Now()
	k.Watch.Called(name, order)
	if r, ok := strategy.(refuser); ok { // this refusal need not wait for the end of a restock: it comes from a read that began after this buyer came
		if err := r.refuse(ctx, order); err != nil {
			k.Watch.Returned(name, order, Receipt{}, OutcomeOf(err), called, time.Time{})
			return Receipt{}, err
		}
	}
	waiting, cancel := context.WithTimeoutCause(ctx, k.Wait-time.Since(called), ErrBusy)
	defer cancel()
	var receipt Receipt
	var asked time.Time
	err := k.through(waiting, order.Product, 1, func() (err error) {
		asked = time.Now()
		receipt, err = strategy.Buy(waiting, order)
		return err
	})
	if waiting.Err() != nil && OutcomeOf(err) == Busy {
		if down := k.Down(ctx, name); down != nil {
			err = down
		}
	}
	k.Watch.Returned(name, order, receipt, OutcomeOf(err), called, asked)
	return receipt, err
}

// refuse answers a request for a strategy that is unknown or cannot run here.
func (k *Counter) refuse(c *gin.Context, name string) {
	if why, known := k.Missing[name]; known {
		problem.Write(c, http.StatusNotImplemented, string(Failed), fmt.Sprintf("strategy %s: %s", name, why))
		return
	}
	problem.Invalid(c, nearest.Unknown("strategy", name, slices.Sorted(maps.Keys(k.Strategies)), "GET /strategies").Error())
}

var errInvalid = errors.New("bad request")

// readOrder reads the query and, for a POST, a JSON body. Members of the body override those of the
// query. problem.CheckQuery has already checked that the query can be parsed. The result `name` is
// the purchaser in the request, or "" if readOrder generated one.
func readOrder(r *http.Request) (o Order, name, lock string, err error) {
	query := r.URL.Query()
	o = Order{Product: DefaultProduct, Purchaser: query.Get("purchaser"), Amount: 1}
	switch keys := r.Header.Values("Idempotency-Key"); {
	case len(keys) > 1:
		return o, "", "", fmt.Errorf("%w: there are %d headers Idempotency-Key; send one", errInvalid, len(keys))
	case len(keys) == 1 && keys[0] == "":
		return o, "", "", fmt.Errorf("%w: Idempotency-Key is empty; leave it out or give it a value", errInvalid)
	case len(keys) == 1:
		o.IdempotencyKey = keys[0]
	}
	if query.Has("product") {
		o.Product = query.Get("product")
	}
	if query.Has("amount") {
		if o.Amount, err = strconv.ParseInt(query.Get("amount"), 10, 64); err != nil {
			return o, "", "", fmt.Errorf("%w: amount must be a whole number from 1 to %d (got %q)", errInvalid, MaxAmount, query.Get("amount"))
		}
	}
	lock = query.Get("lock")
	if r.Method == http.MethodPost {
		if err := readBody(r, &o, &lock); err != nil {
			return o, "", "", fmt.Errorf("%w: %w", errInvalid, err)
		}
	}
	if name = o.Purchaser; name == "" {
		o.Purchaser = generatedName(o.IdempotencyKey)
	}
	if err := o.Check(); err != nil {
		return o, "", "", fmt.Errorf("%w: %w", errInvalid, err)
	}
	return o, name, lock, nil
}

// readBody overrides the values of the query with the members of a JSON body.
func readBody(r *http.Request, o *Order, lock *string) error {
	if r.ContentLength == 0 {
		return nil
	}
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media != "application/json" {
		// Load tools send an empty POST with a form's content type.
		if rest, err := io.ReadAll(r.Body); err != nil || len(rest) > 0 {
			return errors.Join(errors.New("the body must be application/json"), err)
		}
		return nil
	}
	return product.ReadJSON(r, &struct {
		Product   *string `json:"product"`
		Purchaser *string `json:"purchaser"`
		Amount    *int64  `json:"amount"`
		Lock      *string `json:"lock"`
	}{&o.Product, &o.Purchaser, &o.Amount, lock})
}

// generatedName returns a purchaser for a request without one: at random, or from the Idempotency-Key,
// so that a repeated request is the same order.
func generatedName(key string) string {
	if key == "" {
		return "buyer-" + strings.ToLower(rand.Text()[:16])
	}
	sum := sha256.Sum256([]byte(key))
	return "buyer-" + hex.EncodeToString(sum[:8])
}

func (k *Counter) history(c *gin.Context) {
	after, err := wholeNumber(c, "after", 0, 0, 1<<62)
	var limit int64
	if err == nil {
		limit, err = wholeNumber(c, "limit", DefaultPage, 1, MaxPage)
	}
	name := c.Query("product")
	if err == nil && name != "" {
		if bad := product.CheckName(name); bad != nil {
			err = fmt.Errorf("%w: product %w", errInvalid, bad)
		}
	}
	if err != nil {
		WriteError(c, err)
		return
	}
	records, err := k.History(c.Request.Context(), name, after, int(limit))
	if err != nil {
		WriteError(c, err)
		return
	}
	var next *int64 // null on the last page
	if len(records) == int(limit) {
		next = &records[len(records)-1].ID
	}
	c.JSON(http.StatusOK, gin.H{"records": records, "next": next})
}

// wholeNumber reads a query parameter in [low, high], or returns preset if it is missing.
func wholeNumber(c *gin.Context, name string, preset, low, high int64) (int64, error) {
	text, given := c.GetQuery(name)
	if !given {
		return preset, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < low || n > high {
		return 0, fmt.Errorf("%w: %s must be a whole number from %d to %d (got %q)", errInvalid, name, low, high, text)
	}
	return n, nil
}

// WriteError answers with the status and the problem document for an error.
func WriteError(c *gin.Context, err error) {
	outcome := OutcomeOf(err)
	detail := err.Error()
	status := http.StatusInternalServerError
	var tooLarge *http.MaxBytesError
	var down *Unavailable
	var full *Overloaded
	switch {
	case outcome == SoldOut, outcome == LockLost:
		status = http.StatusConflict
	case outcome == Unknown:
		status = http.StatusGatewayTimeout
	case outcome == Busy:
		status = http.StatusServiceUnavailable
	case errors.As(err, &tooLarge):
		status, detail = http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", tooLarge.Limit)
	case errors.Is(err, errInvalid) && errors.Is(err, os.ErrDeadlineExceeded):
		status, detail = http.StatusRequestTimeout, "the body did not come in time"
	case errors.Is(err, errInvalid):
		status, detail = http.StatusBadRequest, strings.TrimPrefix(detail, errInvalid.Error()+": ")
	case errors.Is(err, ErrNoProduct):
		status = http.StatusNotFound
	case errors.Is(err, ErrKeyReused):
		status = http.StatusUnprocessableEntity
	case errors.As(err, &down), errors.Is(err, context.Canceled):
		status = http.StatusServiceUnavailable
	}
	if status == http.StatusServiceUnavailable {
		seconds := 1
		if errors.As(err, &full) {
			seconds = full.seconds()
		}
		c.Header("Retry-After", strconv.Itoa(seconds))
	}
	if down != nil {
		_ = c.Error(down).SetType(gin.ErrorTypePublic) // in the log and in the answer
	}
	if status == http.StatusInternalServerError {
		_ = c.Error(err) // in the log, but not in the answer
		detail = "unexpected error; the log has it under this request id"
	}
	problem.Write(c, status, string(outcome), detail)
}
