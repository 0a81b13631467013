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

// MaxName is the most characters of a name that a person types.
const MaxName = 40

// A Phone is one that comes to the room. ID is a secret of its own: whoever knows it can press
// for it. From is the address that it comes from, "" where those are not counted.
type Phone struct{ ID, Name, From string }

// A buyer is a phone, and what became of its last press in this sale.
type buyer struct {
	number  int    // in the order of coming
	name    string // that was typed
	shown   string // the same, or with a number where another was here first
	from    string
	heard   time.Time
	pressed bool   // ever
	press   *press // that is under way; nil: none
	result
}

// A press has an answer when it is done.
type press struct {
	key    string
	done   chan struct{}
	says   string
	err    error
	hungUp bool // who pressed did, before the answer
}

// A result is what a phone has to show for itself since the last restock.
type result struct {
	outcome purchase.Outcome // of the last press; "" before the first
	unit    int64            // the number of the unit it got; 0 where none follows from the receipt
	beyond  bool             // the sale was of more than there was
	hungUp  bool             // the phone did, before the answer
	units   int              // sold to it
	presses int              // that had an answer
}

// CheckName says in one line what is wrong with a name that a person typed, or nil.
func CheckName(name string) error {
	switch n := utf8.RuneCountInString(name); {
	case name == "":
		return errors.New("the name is empty; type one of 1 to 40 characters")
	case n > MaxName:
		return fmt.Errorf("the name has %d characters; %d are allowed", n, MaxName)
	}
	if err := product.CheckName(name); err != nil {
		return fmt.Errorf("the name %w", err)
	}
	if !strings.ContainsFunc(name, func(c rune) bool { return unicode.IsGraphic(c) && !unicode.IsSpace(c) && !unicode.IsMark(c) }) {
		return errors.New("the name has nothing that can be seen; type a letter")
	}
	return nil
}

// check checks what a phone says of itself.
func (p Phone) check() error {
	if len(p.ID) < 16 || len(p.ID) > 64 || strings.Trim(p.ID, "0123456789abcdef") != "" {
		return fmt.Errorf("%w: phone is not an id of 16 to 64 characters of 0-9 and a-f", errBad)
	}
	if err := CheckName(p.Name); err != nil {
		return fmt.Errorf("%w: %w", errBad, err)
	}
	return nil
}

// refused is why a buyer has nothing: in words for the phone, and what the strategy returned.
type refused struct {
	says  string
	cause error
}

func (r *refused) Error() string { return r.says }

func (r *refused) Unwrap() error { return r.cause }
