package room

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// MaxName is the maximum number of characters in a name.
const MaxName = 40

// A Phone is a phone that joins the room. ID is a secret: a client that knows the ID can press the button for
// this phone. From is the phone's remote address, or "" if the room does not limit the phones of its address.
type Phone struct{ ID, Name, From string }

// A buyer is a phone and the result of its last press in this sale.
type buyer struct {
	number      int    // in order of arrival
	name        string // as typed
	displayName string // the name, with a number added if another buyer already has it
	from        string
	lastSeen    time.Time
	pressed     bool   // whether the buyer has pressed in any sale
	press       *press // the press under way; nil: none
	result
}

// A press is one attempt to buy. It has an answer when the channel `done` is closed.
type press struct {
	key    string
	done   chan struct{}
	says   string
	err    error
	hungUp bool // whether the phone hung up before the answer
}

// A result sums up the presses of a phone since the last restock.
type result struct {
	outcome    purchase.Outcome // outcome of the last press; "" before the first
	unit       int64            // number of the unit; 0 if the receipt does not identify it
	isOversold bool             // whether the sale was beyond the stock
	hungUp     bool             // whether the phone hung up before the answer
	units      int              // units sold to the phone
	presses    int              // presses with an answer
}

// CheckName returns an error of one line if a typed name is invalid.
func CheckName(name string) error {
	switch n := utf8.RuneCountInString(name); {
	case name == "":
		return errors.New("the name is empty; type one of 1 to 40 characters")
	case n > MaxName:
		return fmt.Errorf("the name has %d characters, and the maximum is %d", n, MaxName)
	}
	if err := product.CheckName(name); err != nil {
		return fmt.Errorf("the name %w", err)
	}
	if !strings.ContainsFunc(name, func(c rune) bool { return unicode.IsGraphic(c) && !unicode.IsSpace(c) && !unicode.IsMark(c) }) {
		return errors.New("the name has nothing that can be seen; type a letter")
	}
	return nil
}

func (p Phone) check() error {
	if len(p.ID) < 16 || len(p.ID) > 64 || strings.Trim(p.ID, "0123456789abcdef") != "" {
		return fmt.Errorf("%w: phone is not an id of 16 to 64 characters of 0-9 and a-f", errInvalid)
	}
	if err := CheckName(p.Name); err != nil {
		return fmt.Errorf("%w: %w", errInvalid, err)
	}
	return nil
}

// refused is the error of a refused press: a text for the phone, and the cause, such as the strategy's error.
type refused struct {
	says  string
	cause error
}

func (r *refused) Error() string { return r.says }

func (r *refused) Unwrap() error { return r.cause }
