package waiting

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/oversell/oversell/internal/expect"
)

// TestFirstUse: goroutines that enter a new product's queue at the same time get the same queue.
// With -race it also finds a map that is used without its mutex.
func TestFirstUse(t *testing.T) {
	lines := NewLines(1)
	for i := range 50 {
		product := fmt.Sprintf("new-%d", i)
		entered := make([]*line, 4)
		begin := make(chan struct{})
		var all sync.WaitGroup
		for n := range entered {
			all.Go(func() {
				<-begin
				entered[n] = lines.enter(product)
			})
		}
		close(begin)
		all.Wait()
		if len(slices.Compact(entered)) != 1 {
			t.Fatalf("%s has two queues", product)
		}
		for range entered {
			lines.leave(product)
		}
	}
	expect.Equal(t, lines.byProduct.Len(), 0, "queues without a goroutine")
}
