package room

import (
	"embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/web/page"
	"github.com/oversell/oversell/internal/web/problem"
)

//go:embed web
var web embed.FS

// Routes adds the phone's page, the panel, and what they ask for. addr is where the shop
// listens; the leader's routes stand behind admin.
func (r *Room) Routes(e gin.IRouter, admin gin.HandlerFunc, addr net.Addr) {
	for _, name := range []string{"phone.js", "phone.css", "panel.js", "panel.css", "screen.css", "token.js"} {
		e.GET("/room/"+name, page.File(web, "web/"+name))
	}
	e.GET("/room", page.File(web, "web/phone.html"))
	e.GET("/room/screen", page.File(web, "web/screen.html"))
	e.GET("/room/sale", r.getSale)
	e.PUT("/room/sale", admin, r.putSale)
	e.PUT("/room/door", admin, r.putDoor)
	e.GET("/room/buyers", func(c *gin.Context) { r.getBuyers(c, addr) })
	e.POST("/room/buyers", r.postBuyer)
	e.POST("/room/buy", r.postBuy)
	e.GET("/room/qr.svg", func(c *gin.Context) { getCode(c, addr) })
}

// writeError answers with what an error of a Room means.
func writeError(c *gin.Context, err error) {
	switch {
	case errors.Is(err, errBad):
		problem.Invalid(c, err.Error()[len(errBad.Error()+": "):])
	case errors.Is(err, errShut), errors.Is(err, errPressing), errors.Is(err, errFull):
		problem.Write(c, http.StatusConflict, string(purchase.Failed), err.Error())
	default:
		purchase.WriteError(c, err)
	}
}

type saleJSON struct {
	State     string `json:"state"` // none, shut, opening, open
	OpensInMS int64  `json:"opens_in_ms"`
	Product   string `json:"product"`
	Strategy  string `json:"strategy"`
	Stock     int64  `json:"stock"`
	Sold      int64  `json:"sold"` // units, to phones
}

type buyerJSON struct {
	Number  int              `json:"number"`
	Name    string           `json:"name"`    // as the room knows it: "Ann (2)" where another Ann was first
	Waiting bool             `json:"waiting"` // a press is under way
	Outcome purchase.Outcome `json:"outcome"` // of the last press; "" before the first
	Unit    int64            `json:"unit"`    // 0 where there is none
	Beyond  bool             `json:"beyond"`  // sold when all there was had been sold
	Times   int              `json:"times"`   // how often the unit was sold; 0 where it has no number
	Units   int              `json:"units"`
	Presses int              `json:"presses"`
}

func (r *Room) saleNow() saleJSON {
	if r.sale == nil {
		return saleJSON{State: "empty"}
	}
	s := saleJSON{State: "shut", Product: r.sale.product, Strategy: r.sale.strategy.Name, Stock: r.sale.stock, Sold: r.sale.sold}
	switch {
	case r.door == nil:
	case r.door.isOpen():
		s.State = "open"
	default:
		s.State, s.OpensInMS = "opening", max(0, time.Until(r.door.opens).Milliseconds())
	}
	return s
}

func (r *Room) buyerNow(b *buyer) buyerJSON {
	return buyerJSON{
		Number: b.number, Name: b.shown, Waiting: b.press != nil, Outcome: b.outcome, Unit: b.unit,
		Beyond: b.beyond, Times: r.times(b), Units: b.units, Presses: b.presses,
	}
}

type phoneAnswer struct {
	Sale saleJSON   `json:"sale"`
	You  *buyerJSON `json:"you"`
	Says string     `json:"says"`
}

// times is how often the buyer's unit was sold.
func (r *Room) times(b *buyer) int {
	if r.sale == nil || b.outcome != purchase.Sold || b.unit == 0 {
		return 0
	}
	return r.sale.times[b.unit]
}

// getSale is what a phone asks for every second.
func (r *Room) getSale(c *gin.Context) {
	c.Header("Cache-Control", "no-store")
	c.JSON(http.StatusOK, r.seenBy(c.Query("phone")))
}

func (r *Room) seenBy(phone string) phoneAnswer {
	r.mu.Lock()
	defer r.mu.Unlock()
	answer := phoneAnswer{Sale: r.saleNow()}
	if b := r.buyers[phone]; b != nil {
		b.heard = time.Now()
		you := r.buyerNow(b)
		answer.You = &you
		if r.sale != nil {
			answer.Says = r.sale.words(b.result)
		}
	}
	return answer
}

func (r *Room) putSale(c *gin.Context) {
	var body struct {
		Product  string `json:"product"`
		Strategy string `json:"strategy"`
		Stock    int64  `json:"stock"`
	}
	if !product.ReadBody(c, `{"product": "apple", "strategy": "...", "stock": 10}`, &body) {
		return
	}
	if err := r.Put(c.Request.Context(), body.Product, body.Strategy, body.Stock); err != nil {
		writeError(c, err)
		return
	}
	r.answerSale(c)
}

func (r *Room) putDoor(c *gin.Context) {
	var body struct {
		Open      *bool `json:"open"`
		InSeconds int   `json:"in_seconds"`
	}
	if !product.ReadBody(c, `{"open": true}`, &body) {
		return
	}
	switch {
	case body.Open == nil:
		problem.Invalid(c, `open is missing; send {"open": true, "in_seconds": 3} or {"open": false}`)
		return
	case !*body.Open && body.InSeconds != 0:
		problem.Invalid(c, "in_seconds is for a door that opens; leave it out")
		return
	case !*body.Open:
		r.Shut()
	default:
		if err := r.Open(body.InSeconds); err != nil {
			writeError(c, err)
			return
		}
	}
	r.answerSale(c)
}

func (r *Room) answerSale(c *gin.Context) {
	r.mu.Lock()
	now := r.saleNow()
	r.mu.Unlock()
	c.JSON(http.StatusOK, now)
}

type panelAnswer struct {
	Sale       saleJSON                 `json:"sale"`
	Buyers     []buyerJSON              `json:"buyers"`
	Outcomes   map[purchase.Outcome]int `json:"outcomes"`    // of all presses
	Pages      []string                 `json:"pages"`       // that phones can open
	NeedsToken bool                     `json:"needs_token"` // the leader's routes do
}

// getBuyers is what the panel asks for, four times a second.
func (r *Room) getBuyers(c *gin.Context, addr net.Addr) {
	pages, err := Pages(addr)
	if err != nil {
		writeError(c, err)
		return
	}
	answer := r.everybody()
	tcp, ok := addr.(*net.TCPAddr)
	answer.NeedsToken = !ok || !tcp.IP.IsLoopback()
	answer.Pages = append([]string{}, pages...) // never null
	c.Header("Cache-Control", "no-store")
	c.JSON(http.StatusOK, answer)
}

func (r *Room) everybody() panelAnswer {
	r.mu.Lock()
	defer r.mu.Unlock()
	answer := panelAnswer{Sale: r.saleNow(), Buyers: []buyerJSON{}, Outcomes: map[purchase.Outcome]int{}}
	for _, b := range r.listed() {
		answer.Buyers = append(answer.Buyers, r.buyerNow(b))
	}
	for _, o := range purchase.Outcomes() {
		answer.Outcomes[o] = 0
		if r.sale != nil {
			answer.Outcomes[o] = r.sale.outcomes[o]
		}
	}
	return answer
}

type phoneJSON struct {
	Phone string `json:"phone"`
	Name  string `json:"name"`
}

const phoneExample = `{"phone": "0123456789abcdef", "name": "Ann"}`

func (p phoneJSON) phone(c *gin.Context) Phone { return Phone{p.Phone, p.Name, page.Caller(c.Request)} }

func (r *Room) postBuyer(c *gin.Context) {
	var body phoneJSON
	if !product.ReadBody(c, phoneExample, &body) {
		return
	}
	if err := r.Join(body.phone(c)); err != nil {
		writeError(c, err)
		return
	}
	c.JSON(http.StatusOK, gin.H{"name": body.Name})
}

func (r *Room) postBuy(c *gin.Context) {
	var body phoneJSON
	if !product.ReadBody(c, phoneExample, &body) {
		return
	}
	keys := c.Request.Header.Values("Idempotency-Key")
	if len(keys) != 1 || keys[0] == "" {
		problem.Invalid(c, "send one header Idempotency-Key, a new one for each press")
		return
	}
	says, err := r.Press(c.Request.Context(), body.phone(c), keys[0])
	if err != nil {
		writeError(c, err)
		return
	}
	c.JSON(http.StatusOK, gin.H{"outcome": purchase.Sold, "says": says})
}

// getCode is the QR code of the n-th page that phones can open.
func getCode(c *gin.Context, addr net.Addr) {
	pages, err := Pages(addr)
	if err != nil {
		writeError(c, err)
		return
	}
	if len(pages) == 0 {
		problem.Write(c, http.StatusNotFound, string(purchase.Failed), "only this machine can open the room; shop serve --addr 0.0.0.0:8080 opens it to phones")
		return
	}
	n, err := strconv.Atoi(c.DefaultQuery("n", "0"))
	if err != nil || n < 0 || n >= len(pages) {
		problem.Invalid(c, fmt.Sprintf("n is %q; give a whole number from 0 to %d", c.Query("n"), len(pages)-1))
		return
	}
	svg, err := code(pages[n])
	if err != nil {
		writeError(c, err)
		return
	}
	c.Header("X-Content-Type-Options", "nosniff")
	c.Header("Cache-Control", "no-store")
	c.Data(http.StatusOK, "image/svg+xml", svg)
}
