package terminal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/oversell/oversell/internal/teach/play"
)

// Screen plays by keys. Afterwards the end of the game is shown below the earlier content of the
// terminal.
func (s *Session) Screen(ctx context.Context, in io.Reader, out io.Writer, options ...tea.ProgramOption) error {
	s.Begin()
	m := newScreen(ctx, s)
	options = append([]tea.ProgramOption{
		tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler(),
	}, options...)
	_, err := tea.NewProgram(m, options...).Run()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case m.err != nil:
		return m.err
	case err != nil && !errors.Is(err, tea.ErrInterrupted):
		return fmt.Errorf("the terminal: %w; --plain plays by lines", err)
	}
	if m.at.End != nil {
		_, err = fmt.Fprintf(out, "%s: %s\nagain: %s\n", m.at.End.Verdict, m.at.End.Why, m.at.End.Replay)
	}
	return err
}

// A screen implements tea.Model. It knows what each key does and which word is under way.
type screen struct {
	frame
	s     *Session
	ctx   context.Context
	stop  context.CancelFunc
	typed []string // keys typed during a word
	err   error    // of the game itself
}

func newScreen(ctx context.Context, s *Session) *screen {
	return &screen{s: s, ctx: ctx, frame: frame{level: s.Level, at: s.Game.Position(), width: 80, height: 24}}
}

// done is the message that a word has ended.
type done struct {
	Answer
	err error
}

// Init implements tea.Model.
func (m *screen) Init() tea.Cmd { return nil }

// Update implements tea.Model.
func (m *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return m, m.press(msg.String())
	case done:
		return m, m.done(msg)
	}
	return m, nil
}

// press handles a key.
func (m *screen) press(key string) tea.Cmd {
	switch {
	case m.busy != "" && (key == "esc" || key == "ctrl+c"):
		m.stop()
		m.typed = nil
		return nil
	case m.busy != "":
		m.typed = append(m.typed, key)
		return nil
	case key == "ctrl+c":
		return tea.Quit
	case len(key) == 1 && key >= "1" && key <= "9":
		return m.letGo(int(key[0] - '0'))
	}
	switch key {
	case "left", "up", "shift+tab":
		m.move(-1)
	case "right", "down", "tab":
		m.move(1)
	case "enter", "space":
		if c := m.chosen(); m.at.End == nil && c.Token != "" {
			return m.do(c.Token)
		}
	case "e":
		m.nextEvent()
	default:
		if slices.ContainsFunc(vocabulary(), func(w word) bool { return w.key == key && !w.plain }) {
			return m.do(key)
		}
		m.message = "There is no key " + key + "; ? lists the keys."
	}
	return nil
}

// letGo sends a buyer's command. With several commands, the key selects one and Enter sends it.
func (m *screen) letGo(buyer int) tea.Cmd {
	own := of(m.at.Choices, buyer)
	switch len(own) {
	case 0:
		m.message = fmt.Sprintf("Buyer %d has nothing that can go.", buyer)
		return nil
	case 1:
		return m.do(own[0].Token)
	}
	m.next(func(c play.Choice) bool { return c.Event == "" && c.Buyer == buyer })
	m.message = "Enter lets it go; the key again chooses the next one."
	return nil
}

// nextEvent moves the cursor to the next event.
func (m *screen) nextEvent() {
	if m.next(func(c play.Choice) bool { return c.Event != "" }) {
		m.message = "Enter has it happen; e again chooses the next one."
	} else {
		m.message = "There is no event that could happen now."
	}
}

// do executes a word while the screen goes on drawing.
func (m *screen) do(said string) tea.Cmd {
	m.message, m.busy = "", "one moment"
	if said == "p" || said == "h" {
		m.busy = "the explorer runs the orders; esc stops it"
	}
	ctx, stop := context.WithCancel(m.ctx)
	m.stop = stop
	return func() tea.Msg {
		defer stop()
		a, err := m.s.Do(ctx, said)
		return done{a, err}
	}
}

// done shows the result of a word and continues with the keys typed meanwhile.
func (m *screen) done(d done) tea.Cmd {
	m.busy, m.message = "", d.Text
	if d.err != nil {
		m.err = d.err
		return tea.Quit
	}
	if d.Quit {
		return tea.Quit
	}
	before := m.chosen()
	m.at, m.scroll = m.s.Game.Position(), 0
	same := func(c play.Choice) bool { return c.Token == before.Token }
	beside := func(c play.Choice) bool { return c.Buyer == before.Buyer && c.Event == "" }
	m.cursor = max(cmp.Or(1+slices.IndexFunc(m.at.Choices, same), 1+slices.IndexFunc(m.at.Choices, beside))-1, 0)
	for m.busy == "" && len(m.typed) > 0 {
		key := m.typed[0]
		m.typed = m.typed[1:]
		if next := m.press(key); next != nil {
			return next
		}
	}
	return nil
}

// View implements tea.Model.
func (m *screen) View() tea.View {
	v := tea.NewView(strings.Join(m.lines(), "\n"))
	v.AltScreen = true
	return v
}
