package host

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/teach/play"
	"github.com/oversell/oversell/internal/teach/play/child"
	"github.com/oversell/oversell/internal/teach/play/level"
	"github.com/oversell/oversell/internal/teach/sse"
	"github.com/oversell/oversell/internal/web/page"
	"github.com/oversell/oversell/internal/web/problem"
)

//go:embed web
var web embed.FS

// Limits of the search that checks a player's claim that the code cannot be broken. proveBudget is for a game
// without a level, publicBudget for a shop that other machines can reach.
const (
	proveBudget  = 30 * time.Second
	publicBudget = 45 * time.Second
)

// retryAfter is the Retry-After, in seconds, if the maximum number of games or pages is reached.
const retryAfter = "20"

// Routes adds the page, its files, and the games.
func (h *Host) Routes(r gin.IRouter) {
	r.GET("/play", page.File(web, "web/play.html"))
	for _, name := range []string{"app.js", "board.js", "end.js", "levels.js", "server.js", "style.css"} {
		r.GET("/play/"+name, page.File(web, "web/"+name))
	}
	all := levels()
	r.GET("/play/levels", func(c *gin.Context) { c.JSON(http.StatusOK, gin.H{"levels": all}) })
	r.POST("/play/games", h.postGame)
	r.GET("/play/games/:id", h.with(func(c *gin.Context, g *game) { c.JSON(http.StatusOK, g.view()) }))
	r.DELETE("/play/games/:id", h.with(func(c *gin.Context, g *game) {
		g.end("the player has ended the game")
		c.Status(http.StatusNoContent)
	}))
	r.POST("/play/games/:id/moves", h.with(move))
	r.POST("/play/games/:id/undo", h.with(func(c *gin.Context, g *game) { step(c, g, child.Request{Op: child.Undo}) }))
	r.POST("/play/games/:id/restart", h.with(func(c *gin.Context, g *game) { step(c, g, child.Request{Op: child.Restart}) }))
	r.POST("/play/games/:id/hint", h.with(hint))
	r.POST("/play/games/:id/prove", h.with(prove))
	r.GET("/play/games/:id/events", h.with(events))
}

// with returns a handler that finds the game in the route and calls the function `do`.
func (h *Host) with(do func(c *gin.Context, g *game)) gin.HandlerFunc {
	return func(c *gin.Context) {
		c.Header("Cache-Control", "no-store")
		g, err := h.find(c.Param("id"))
		if err != nil {
			fail(c, err)
			return
		}
		do(c, g)
	}
}

// A levelView is a level as the player sees it before winning. For an open level, it does not tell whether
// the code can be broken.
type levelView struct {
	Name    string      `json:"name"`
	Title   string      `json:"title"`
	Task    string      `json:"task"`
	Wanted  string      `json:"wanted"`
	Par     string      `json:"par"`
	Minutes int         `json:"minutes"`
	Claims  bool        `json:"claims"` // whether the player may claim that the code cannot be broken
	Config  play.Config `json:"config"`
}

func newLevelView(l level.Level) levelView {
	return levelView{Name: l.Name, Title: l.Title, Task: l.Task, Wanted: l.Wanted(), Par: l.Shown(), Minutes: l.Minutes, Claims: l.Unbreakable || l.Open, Config: l.Config}
}

func levels() (all []levelView) {
	for _, l := range level.All() {
		all = append(all, newLevelView(l))
	}
	return all
}

// A won is the message after a level is won.
type won struct {
	Steps    int    `json:"steps"`
	Switches int    `json:"switches"`
	Par      string `json:"par"`
	Learned  string `json:"learned"`
	Source   string `json:"source"`
}

type gameView struct {
	ID       string        `json:"id"`
	Level    *levelView    `json:"level"` // null: a game without a level
	Position play.Position `json:"position"`
	Won      *won          `json:"won"` // null unless this end wins the level
}

func (g *game) view() gameView {
	v := gameView{ID: g.id, Position: g.position()}
	if g.level != nil {
		shown := newLevelView(*g.level)
		v.Level = &shown
		if g.level.WonBy(v.Position.End) {
			v.Won = newWon(*g.level, v.Position)
		}
	}
	return v
}

func newWon(l level.Level, p play.Position) *won {
	return &won{Steps: len(p.Tokens), Switches: p.Switches, Par: l.Par().String(), Learned: l.Learned, Source: l.Source}
}

func (h *Host) postGame(c *gin.Context) {
	var body struct {
		play.Config
		Level string `json:"level"`
	}
	if !product.ReadBody(c, `{"strategy": "..."} or {"level": "..."}; GET /play/levels lists the levels`, &body) {
		return
	}
	config := body.Config
	var of *level.Level
	if body.Level != "" {
		l, found := level.Named(body.Level)
		switch {
		case !found:
			problem.Invalid(c, fmt.Sprintf("there is no level %.40q; GET /play/levels lists them", body.Level))
			return
		case config.Strategy != "":
			problem.Invalid(c, "give a level or a strategy, not both: a level has its own")
			return
		}
		config, of = l.Config, &l
	}
	config = config.Filled()
	if err := config.Check(); err != nil { // before a child process starts
		fail(c, err)
		return
	}
	lift(c)
	g, err := h.create(page.Caller(c.Request), config, of)
	if err != nil {
		fail(c, err)
		return
	}
	c.Header("Cache-Control", "no-store")
	c.Header("Location", "/play/games/"+g.id)
	c.JSON(http.StatusCreated, g.view())
}

func move(c *gin.Context, g *game) {
	var body struct {
		Token string `json:"token"`
	}
	if product.ReadBody(c, `{"token": "1"}`, &body) {
		step(c, g, child.Request{Op: child.Move, Token: body.Token})
	}
}

// step sends a quick request and answers with the position.
func step(c *gin.Context, g *game, r child.Request) {
	lift(c)
	if _, err := g.ask(c.Request.Context(), r); err != nil {
		fail(c, err)
		return
	}
	c.JSON(http.StatusOK, g.view())
}

// An advice is a hint: words, and for the third hint a step.
type advice struct {
	N    int    `json:"n"`
	Text string `json:"text"`
	level.Advice
}

func hint(c *gin.Context, g *game) {
	var body struct {
		N int `json:"n"`
	}
	if !product.ReadBody(c, `{"n": 1}, with n from 1 to 3`, &body) {
		return
	}
	if body.N < 1 || body.N > 3 {
		problem.Invalid(c, fmt.Sprintf("n must be between 1 and 3 (got %d)", body.N))
		return
	}
	var l level.Level // the zero Level, whose goal is any violation
	if g.level != nil {
		l = *g.level
		if body.N < 3 {
			c.JSON(http.StatusOK, advice{N: body.N, Text: []string{l.Thought, l.Deed}[body.N-1]})
			return
		}
	}
	lift(c)
	a, err := l.Next(c.Request.Context(), player{g})
	if err != nil {
		fail(c, err)
		return
	}
	c.JSON(http.StatusOK, advice{N: 3, Text: a.String(), Advice: a})
}

// A player implements level.Player.
type player struct{ *game }

func (p player) Position() play.Position { return p.position() }

func (p player) Hint(ctx context.Context, goal verdict.Verdict, e play.Effort) (play.Way, error) {
	a, err := p.search(ctx, &p.host.hints, child.Request{Op: child.Hint, Goal: goal, Effort: e})
	if err != nil || a.Way == nil {
		return play.Way{}, err
	}
	return *a.Way, nil
}

// prove handles POST /play/games/:id/prove. The search ends when the page disconnects.
func prove(c *gin.Context, g *game) {
	budget := proveBudget
	if g.level != nil {
		budget = level.ProveBudget
	}
	if g.host.Public {
		budget = min(budget, publicBudget)
	}
	lift(c)
	a, err := g.search(c.Request.Context(), &g.host.proofs, child.Request{Op: child.Prove, Effort: play.Effort{Budget: budget, Bound: -1}})
	if err != nil {
		fail(c, err)
		return
	}
	answer := struct {
		*play.Proof
		Won *won `json:"won"`
	}{Proof: a.Proof}
	if g.level != nil && g.level.WonByProof(*a.Proof) {
		answer.Won = newWon(*g.level, play.Position{})
	}
	c.JSON(http.StatusOK, answer)
}

// lift removes the server's time-outs for this request and its answer.
func lift(c *gin.Context) {
	w := http.NewResponseController(c.Writer)
	_ = errors.Join(w.SetWriteDeadline(time.Time{}), w.SetReadDeadline(time.Time{})) // fails only on a server without deadlines
}

// events handles GET /play/games/:id/events: server-sent events named "progress" and, at the end, "ended". A
// game ends soon after the last page has stopped reading them.
func events(c *gin.Context, g *game) {
	events, leave, joined := g.join()
	if !joined {
		c.Header("Retry-After", retryAfter)
		problem.Write(c, http.StatusServiceUnavailable, "failed", fmt.Sprintf("%d pages show this game, as many as there may be", mostPages))
		return
	}
	defer leave()
	lift(c)
	to, err := sse.Open(c.Writer)
	if err != nil {
		fail(c, err)
		return
	}
	alive := time.NewTicker(sse.Heartbeat)
	defer alive.Stop()
	for err = to.Begin(); err == nil; {
		select {
		case e := <-events:
			err = to.Send(e.name, e.data)
		case <-alive.C:
			err = to.Alive()
		case <-g.over:
			_ = to.Send("ended", gin.H{"why": g.why}) // an error means that the page has gone
			return
		case <-c.Request.Context().Done():
			return
		}
	}
}

func fail(c *gin.Context, err error) {
	var full errFull
	var said errAnswer
	status := http.StatusInternalServerError
	switch {
	case errors.As(err, &errEach{}):
		status = http.StatusTooManyRequests
	case errors.As(err, &full):
		c.Header("Retry-After", retryAfter)
		status = http.StatusServiceUnavailable
	case errors.Is(err, errClosed):
		status = http.StatusServiceUnavailable
	case errors.Is(err, errNoGame):
		status = http.StatusNotFound
	case errors.Is(err, play.ErrMissing), errors.As(err, &said) && said.Kind == child.Missing:
		status = http.StatusNotImplemented
	case errors.Is(err, play.ErrBadConfig):
		status = http.StatusBadRequest
	case errors.As(err, &said) && said.Kind == child.Bad:
		status = http.StatusConflict
	case errors.As(err, &errDied{}):
		status = http.StatusGone
	}
	problem.Write(c, status, "failed", err.Error())
}
