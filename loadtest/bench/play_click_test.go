//go:build bench

package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/load/quantile"
	"github.com/oversell/oversell/internal/teach/play"
	"github.com/oversell/oversell/internal/teach/play/host"
)

// clicked is a game as a page sees it.
type clicked struct {
	ID       string        `json:"id"`
	Position play.Position `json:"position"`
}

// BenchmarkPlayClick measures a click in one of thirty games of the built program, with concurrent
// clicks in all of them. It does not count the first click of each.
func BenchmarkPlayClick(b *testing.B) {
	addr, _, stop := benchProgram(b, builtForBench(b))
	defer stop()
	base := "http://" + addr
	games := make([]clicked, host.Most)
	for i := range games {
		if err := post(base+"/play/games", `{"strategy":"none"}`, &games[i]); err != nil {
			b.Fatal(err)
		}
		page, err := http.Get(base + "/play/games/" + games[i].ID + "/events")
		if err != nil {
			b.Fatal(err)
		}
		defer page.Body.Close()
		if _, err := bufio.NewReader(page.Body).ReadString('\n'); err != nil {
			b.Fatal(err)
		}
	}
	round := func() (took []time.Duration) {
		took = make([]time.Duration, len(games))
		var all sync.WaitGroup
		for i := range games {
			all.Go(func() {
				began := time.Now()
				if err := games[i].click(base); err != nil {
					b.Error(err)
				}
				took[i] = time.Since(began)
			})
		}
		all.Wait()
		return took
	}
	round()
	var took []time.Duration
	b.ResetTimer()
	for range b.N {
		took = append(took, round()...)
	}
	b.StopTimer()
	slices.Sort(took)
	for _, m := range []struct {
		name string
		is   time.Duration
	}{{"ms-p50", quantile.Of(took, 0.5)}, {"ms-p99", quantile.Of(took, 0.99)}, {"ms-max", took[len(took)-1]}} {
		b.ReportMetric(float64(m.is.Microseconds())/1000, m.name)
	}
}

// click sends the command of the first buyer that can go next, or restarts the game.
func (g *clicked) click(base string) error {
	at := base + "/play/games/" + g.ID
	if g.Position.End != nil {
		*g = clicked{}
		return post(at+"/restart", `{}`, g)
	}
	body := fmt.Sprintf(`{"token":%q}`, g.Position.Choices[0].Token)
	*g = clicked{}
	return post(at+"/moves", body, g)
}

func post(url, body string, to any) error {
	r, err := http.Post(url, "application/json", bytes.NewBufferString(body))
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if r.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s: %s", url, r.Status)
	}
	return json.NewDecoder(r.Body).Decode(to)
}
