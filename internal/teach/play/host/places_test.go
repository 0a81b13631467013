package host

import (
	"bufio"
	"context"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/require"
)

// TestEach: if other machines may play, one address may have only a few games. This machine may
// have all.
func TestEach(t *testing.T) {
	h := &Host{Command: as("light"), Public: true}
	base := serve(t, h)
	status := func(from string) int {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/play/games", strings.NewReader(`{"strategy":"none"}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(fromHeader, from)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		answer.Body.Close()
		return answer.StatusCode
	}
	for i, c := range []struct {
		from string
		want int
	}{
		{"10.0.0.1:1", 201},
		{"10.0.0.1:2", 201},
		{"10.0.0.1:3", 201},
		{"10.0.0.1:4", 201},
		{"10.0.0.1:5", 429},
		{"10.0.0.2:1", 201},
		{"", 201},
		{"", 201},
		{"", 201},
		{"", 201},
		{"", 201},
	} {
		expect.Equal(t, status(c.from), c.want, "game", i+1, "from", c.from)
	}
	for _, g := range h.games {
		if g.from == "10.0.0.1" {
			g.end("ended")
			break
		}
	}
	expect.Equal(t, status("10.0.0.1:6"), http.StatusCreated, "when one has ended")
}

// TestLine: a player that waits for the search of a claim sees its place in the queue and does not
// count as idle. Hints do not wait for such searches.
func TestLine(t *testing.T) {
	clock := &hands{}
	base := serve(t, &Host{Command: as("searches"), After: clock.after})
	var proofs sync.WaitGroup
	defer proofs.Wait()
	prove := func() (id string, events *bufio.Scanner, hangUp func()) {
		id = begin(t, base, `{"strategy":"none"}`).ID
		events = watch(t, base, id)
		ctx, cancel := context.WithCancel(t.Context())
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, base+"/play/games/"+id+"/prove", nil)
		proofs.Go(func() {
			if answer, err := http.DefaultClient.Do(r); err == nil {
				answer.Body.Close()
			}
		})
		return id, events, cancel
	}
	var searching []func()
	for range max(1, runtime.NumCPU()/2) {
		_, events, hangUp := prove()
		await(t, events, `data: {"runs":1`)
		searching = append(searching, hangUp)
	}
	_, events1, hangUp1 := prove()
	await(t, events1, `data: {"place":1}`)
	_, events2, hangUp2 := prove()
	await(t, events2, `data: {"place":2}`)
	expect.Equal(t, len(clock.due(Idle)), 0, "games that search or wait count as idle")
	var h advice
	other := begin(t, base, `{"strategy":"none"}`)
	if call(t, http.MethodPost, base+"/play/games/"+other.ID+"/hint", `{"n":3}`, &h); h.Text == "" {
		t.Errorf("a hint while claims are searched: %+v", h)
	}
	hangUp1()
	await(t, events2, `data: {"place":1}`)
	searching[0]()
	await(t, events2, `data: {"runs":1`)
	hangUp2()
	for _, hangUp := range searching {
		hangUp()
	}
}
