package purchase_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/purchase"
)

const admissionWait = 5 * time.Second

// till is a strategy that serves one buyer at a time while it is open.
type till struct {
	takes time.Duration
	one   chan struct{}

	mu   sync.Mutex
	came int
}

func newTill(takes time.Duration) *till { return &till{takes: takes, one: make(chan struct{}, 1)} }

func (s *till) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	s.mu.Lock()
	s.came++
	s.mu.Unlock()
	select {
	case s.one <- struct{}{}:
	case <-ctx.Done():
		return purchase.Receipt{}, context.Cause(ctx)
	}
	defer func() { <-s.one }()
	select {
	case <-time.After(s.takes):
		return purchase.Receipt{Product: o.Product, Amount: o.Amount}, nil
	case <-ctx.Done():
		return purchase.Receipt{}, context.Cause(ctx)
	}
}

func (s *till) served() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.came
}

type answer struct {
	err  error
	took time.Duration
}

// buyWithin buys with the limited wait of a Counter's buyer.
func buyWithin(ctx context.Context, s purchase.Strategy, o purchase.Order) answer {
	start := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, admissionWait, purchase.ErrBusy)
	defer cancel()
	_, err := s.Buy(ctx, o)
	return answer{err, time.Since(start)}
}

// retryAfter returns the time after which a refused buyer may come back, or 0 for any other answer.
func retryAfter(t *testing.T, a answer) time.Duration {
	t.Helper()
	var full *purchase.Overloaded
	if !errors.As(a.err, &full) {
		return 0
	}
	if purchase.OutcomeOf(a.err) != purchase.Busy || a.took != 0 || full.RetryAfter <= 0 {
		t.Errorf("%v after %s, back in %s; want busy at once, and later than now", a.err, a.took, full.RetryAfter)
	}
	return full.RetryAfter
}

// TestBurstIsServed: of many simultaneous buyers, all that can be served in time are served.
func TestBurstIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTill(time.Millisecond)
		open := purchase.NewAdmission(admissionWait).Before("till", s)
		answers := make(chan answer, 1_000)
		for range cap(answers) {
			go func() { answers <- buyWithin(t.Context(), open, units(1)) }()
		}
		for range cap(answers) {
			if a := <-answers; a.err != nil {
				t.Fatalf("%v after %s, want a sale", a.err, a.took)
			}
		}
	})
}

// TestCrowdThatStays: 1,000 buyers ask again and again. With an Admission, the strategy sells as
// fast as it can, and a served buyer waits no longer than with 256 buyers. Without an Admission, each
// buyer waits a second.
func TestCrowdThatStays(t *testing.T) {
	for _, admitted := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var s purchase.Strategy = newTill(time.Millisecond)
			if admitted {
				s = purchase.NewAdmission(admissionWait).Before("till", s)
			}
			var mu sync.Mutex
			var took []time.Duration
			var crowd sync.WaitGroup
			const settled, over = 3 * time.Second, 8 * time.Second
			start := time.Now()
			for range 1_000 {
				crowd.Go(func() {
					for time.Since(start) < over {
						a := buyWithin(t.Context(), s, units(1))
						mu.Lock()
						if since := time.Since(start); a.err == nil && since > settled && since <= over {
							took = append(took, a.took)
						}
						mu.Unlock()
						time.Sleep(retryAfter(t, a))
					}
				})
			}
			crowd.Wait()
			slices.Sort(took)
			if perSecond := len(took) / 5; perSecond < 950 {
				t.Errorf("admission %v: %d a second, want almost 1,000", admitted, perSecond)
			}
			if p99 := took[len(took)*99/100]; (p99 <= 300*time.Millisecond) != admitted {
				t.Errorf("admission %v: p99 %s", admitted, p99)
			}
		})
	}
}

// TestComingBackIsNoBurst: refused buyers come back too early, after all others have left. Only 256
// of them (the constant crowd) enter, since they are no new burst.
func TestComingBackIsNoBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTill(time.Millisecond)
		open := purchase.NewAdmission(admissionWait).Before("till", s)
		wave := func(buyers int) (sold int) {
			answers := make(chan answer, buyers)
			for range buyers {
				go func() { answers <- buyWithin(t.Context(), open, units(1)) }()
			}
			for range buyers {
				if a := <-answers; a.err == nil {
					sold++
				}
			}
			return sold
		}
		served := make(chan int, 1)
		go func() { served <- wave(1_000) }()
		time.Sleep(admissionWait/10 + time.Millisecond) // the burst's time is over, and half of its buyers are served
		expect.Equal(t, wave(2_000), 0, "late buyers that were let in")
		expect.Equal(t, <-served, 1_000, "the first of a burst")
		expect.Equal(t, wave(1_000), 256, "returning buyers that were let in")
		time.Sleep(time.Minute)
		expect.Equal(t, wave(1_000), 1_000, "much later buyers that were let in")
	})
}

// TestLockIsKept: while no buyer is served, new buyers are refused at once, and only the admitted
// ones wait. Buyers of another product are served. When serving resumes, all buyers are served.
func TestLockIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTill(time.Millisecond)
		admission := purchase.NewAdmission(admissionWait)
		open := admission.Before("till", s)
		s.one <- struct{}{} // a holder is gone and has not released the lock
		first := make(chan answer, 100)
		for range cap(first) {
			go func() { first <- buyWithin(t.Context(), open, units(1)) }()
		}
		time.Sleep(admissionWait/2 + time.Millisecond)
		came := s.served()
		for range 10 {
			if retryAfter(t, buyWithin(t.Context(), open, units(1))) == 0 {
				t.Error("a buyer was let in although none was served for half of the wait")
			}
		}
		expect.Equal(t, s.served(), came, "refused buyers that reached the strategy")
		pear := units(1)
		pear.Product = "pear"
		if a := buyWithin(t.Context(), admission.Before("till", newTill(time.Millisecond)), pear); a.err != nil {
			t.Errorf("a buyer of another product: %v", a.err)
		}
		for range cap(first) {
			expect.ErrorIs(t, (<-first).err, purchase.ErrBusy)
		}
		<-s.one
		if a := buyWithin(t.Context(), open, units(1)); a.err != nil {
			t.Errorf("when it is over: %v", a.err)
		}
	})
}

// TestTooSlowToBeServed: a strategy serves one buyer per 100 ms. Once that is known, the admission
// lets in only as many buyers as the strategy serves in half of a wait, but at least a few, so that
// the pace stays known.
func TestTooSlowToBeServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := purchase.NewAdmission(admissionWait).Before("till", newTill(100*time.Millisecond))
		var crowd sync.WaitGroup
		var mu sync.Mutex
		sold, late := 0, 0
		start := time.Now()
		for range 200 {
			crowd.Go(func() {
				for time.Since(start) < time.Minute {
					a := buyWithin(t.Context(), open, units(1))
					mu.Lock()
					switch {
					case a.err == nil:
						sold++
					case retryAfter(t, a) == 0 && time.Since(start) > 20*time.Second:
						late++
					}
					mu.Unlock()
					time.Sleep(max(retryAfter(t, a), time.Second))
				}
			})
		}
		crowd.Wait()
		if sold < 500 || late > 0 {
			t.Errorf("%d sales in a minute, want 600 at most; %d admitted buyers were not served, want none", sold, late)
		}
	})
}

// TestHangUpMakesRoom: a buyer that disconnects leaves at once, and does not count in the pace.
func TestHangUpMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTill(time.Millisecond)
		open := purchase.NewAdmission(admissionWait).Before("till", s)
		s.one <- struct{}{}
		ctx, hangUp := context.WithCancel(t.Context())
		gone := make(chan answer, 400)
		for range cap(gone) {
			go func() { gone <- buyWithin(ctx, open, units(1)) }()
		}
		time.Sleep(admissionWait / 4) // the burst is over
		if retryAfter(t, buyWithin(t.Context(), open, units(1))) == 0 {
			t.Error("was let in on top of a crowd that stays")
		}
		hangUp()
		for range cap(gone) {
			expect.ErrorIs(t, (<-gone).err, context.Canceled)
		}
		<-s.one
		want(t, buyersAfter(t, open, 100), purchase.Sold)
	})
}

// buyersAfter sends n buyers and returns when their waits are over.
func buyersAfter(t *testing.T, s purchase.Strategy, n int) chan purchase.Outcome {
	t.Helper()
	outcomes := buyers(t.Context(), s, n)
	time.Sleep(admissionWait)
	return outcomes
}

// TestRetryAfterIsSpread: refused buyers get different Retry-After times, at most half a minute.
func TestRetryAfterIsSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTill(10 * time.Millisecond)
		open := purchase.NewAdmission(admissionWait).Before("till", s)
		crowd := make(chan answer, 320)
		for range cap(crowd) {
			go func() { crowd <- buyWithin(t.Context(), open, units(1)) }()
		}
		time.Sleep(admissionWait/10 + 10*time.Millisecond) // 50 buyers were served, 270 are inside
		var last time.Duration
		for range 5_000 {
			after := retryAfter(t, buyWithin(t.Context(), open, units(1)))
			if after < last || after > 30*time.Second {
				t.Fatalf("%s after %s, want later ones, and 30s at most", after, last)
			}
			last = after
		}
		expect.Equal(t, last, 30*time.Second, "the last of 5,000")
		for range cap(crowd) {
			<-crowd
		}
	})
}
