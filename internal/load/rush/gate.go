package rush

import (
	"context"
	"io"
	"net/http"
	"sync"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// startGate holds the buyers back until all of them stand at it with an open
// connection, so that they start at once and not as fast as one loop can dial.
type startGate struct {
	ctx     context.Context
	client  *http.Client
	mu      sync.Mutex
	missing int
	opens   chan struct{}
}

func newStartGate(ctx context.Context, buyers int, client *http.Client) *startGate {
	return &startGate{ctx: ctx, client: client, missing: buyers, opens: make(chan struct{})}
}

func (g *startGate) open() { close(g.opens) }

// wait returns when every buyer is here. Once the gate is open it does not wait.
func (g *startGate) wait(baseURL string) error {
	select {
	case <-g.opens:
		return nil
	default:
	}
	g.connect(baseURL)
	g.mu.Lock()
	g.missing--
	if g.missing == 0 {
		g.open()
	}
	g.mu.Unlock()
	select {
	case <-g.opens:
		return nil
	case <-g.ctx.Done():
		return vegeta.ErrNoTargets
	}
}

// connect leaves an open connection in the pool. The answer does not matter,
// nor whether there is one: the buy will show it.
func (g *startGate) connect(baseURL string) {
	request, err := http.NewRequestWithContext(g.ctx, http.MethodGet, baseURL+"/healthz", nil)
	if err != nil {
		return
	}
	response, err := g.client.Do(request)
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<16))
	_ = response.Body.Close()
}
