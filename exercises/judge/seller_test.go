package judge

import (
	"strings"
	"testing"

	"github.com/oversell/oversell/exercises/kata"
	"github.com/oversell/oversell/internal/expect"
)

// TestNothingToSell: if New returns nil, the finding says so. It does not report the place of a
// panic.
func TestNothingToSell(t *testing.T) {
	s := &seller{of: &subject{code: code{pkg: "learner.example/one"}}}
	if _, err := s.Buy(t.Context(), kata.Order{Purchaser: "buyer-1"}); err == nil || err.Error() != "New returns nil; it must return what sells" {
		t.Errorf("%v", err)
	}
	expect.Equal(t, s.of.panicked("panic: oh\n\ngoroutine 7 [running]:\nruntime.x()\n\t/go/x.go:1 +0x1\n"), "", "elsewhere")
	if at := s.of.panicked("learner.example/one.(*shop).Buy(0x1)\n\t/home/me/first/shop.go:17 +0x2c\n"); !strings.HasSuffix(at, ", at shop.go:17") {
		t.Errorf("%q", at)
	}
}
