package gates

import (
	"testing"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/wire"
	"github.com/oversell/oversell/internal/require"
)

// TestCrowd: commands are counted while they are at their servers. A command whose connection
// ends is no longer counted.
func TestCrowd(t *testing.T) {
	g, err := New(&app.App{}, nil)
	require.NoError(t, err)
	one, two, three := &wire.Command{Gated: true}, &wire.Command{Gated: true}, &wire.Command{Gated: true}
	g.First(one)
	g.First(&wire.Command{}) // passes every gate
	g.First(two)
	if most, left := g.Crowd.Gathered(); most != 2 || len(left) != 0 {
		t.Errorf("%d at once, %d left; want 2, 0", most, len(left))
	}
	g.Crowd.cut(one.Conn())
	if _, left := g.Crowd.Gathered(); len(left) != 2 {
		t.Errorf("%d connections have left a command at its server, want that of both", len(left))
	}
	g.Crowd.Gather()
	g.First(three)
	if most, left := g.Crowd.Gathered(); most != 1 || len(left) != 0 {
		t.Errorf("%d at once, %d left in the next round; want 1, 0", most, len(left))
	}
}
