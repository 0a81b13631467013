package room

import (
	"embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/web/page"
	"github.com/oversell/oversell/internal/web/problem"
)

//go:embed web
var web embed.FS

// Routes adds the phone's page, the panel for the projector, and their routes. The shop listens at addr. The
// handler `admin` guards the leader's routes.
func (r *Room) Routes(e gin.IRouter, admin gin.HandlerFunc, addr net.Addr) {
	h := handler{r, addr}
	for _, name := range []string{"phone.js", "phone.css", "panel.js", "panel.css", "screen.css", "token.js"} {
		e.GET("/room/"+name, page.File(web, "web/"+name))
	}
	e.GET("/room", page.File(web, "web/phone.html"))
	e.GET("/room/screen", page.File(web, "web/screen.html"))
	e.GET("/room/sale", h.getSale)
	e.PUT("/room/sale", admin, h.putSale)
	e.PUT("/room/door", admin, h.putDoor)
	e.GET("/room/buyers", h.getBuyers)
	e.POST("/room/buyers", h.postBuyer)
	e.POST("/room/buy", h.postBuy)
	e.GET("/room/qr.svg", h.getCode)
}

type handler struct {
	room *Room
	addr net.Addr // the shop's address
}

func writeError(c *gin.Context, err error) {
	switch {
	case errors.Is(err, errInvalid):
		problem.Invalid(c, err.Error()[len(errInvalid.Error()+": "):])
	case errors.Is(err, errShut), errors.Is(err, errPressing), errors.Is(err, errFull):
		problem.Write(c, http.StatusConflict, string(purchase.Failed), err.Error())
	default:
		purchase.WriteError(c, err)
	}
}

type phoneAnswer struct {
	Sale saleJSON   `json:"sale"`
	You  *buyerJSON `json:"you"`
	Says string     `json:"says"`
}

// getSale answers a phone, which polls every second.
func (h handler) getSale(c *gin.Context) {
	c.Header("Cache-Control", "no-store")
	c.JSON(http.StatusOK, h.room.seenBy(c.Query("phone")))
}

func (h handler) putSale(c *gin.Context) {
	var body struct {
		Product  string `json:"product"`
		Strategy string `json:"strategy"`
		Stock    int64  `json:"stock"`
	}
	if !product.ReadBody(c, `{"product": "apple", "strategy": "...", "stock": 10}`, &body) {
		return
	}
	if err := h.room.Put(c.Request.Context(), body.Product, body.Strategy, body.Stock); err != nil {
		writeError(c, err)
		return
	}
	h.answerSale(c)
}

func (h handler) putDoor(c *gin.Context) {
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
		problem.Invalid(c, "in_seconds works only with open: true; leave it out")
		return
	case !*body.Open:
		h.room.Shut()
	default:
		if err := h.room.Open(body.InSeconds); err != nil {
			writeError(c, err)
			return
		}
	}
	h.answerSale(c)
}

func (h handler) answerSale(c *gin.Context) {
	c.JSON(http.StatusOK, h.room.seenBy("").Sale)
}

type panelAnswer struct {
	Sale       saleJSON                 `json:"sale"`
	Buyers     []buyerJSON              `json:"buyers"`
	Outcomes   map[purchase.Outcome]int `json:"outcomes"`    // counts all presses
	Pages      []string                 `json:"pages"`       // addresses that phones can open
	NeedsToken bool                     `json:"needs_token"` // whether the leader's routes need a token
}

// getBuyers answers the panel, which polls four times a second.
func (h handler) getBuyers(c *gin.Context) {
	pages, err := Pages(h.addr)
	if err != nil {
		writeError(c, err)
		return
	}
	answer := h.room.panelView()
	tcp, ok := h.addr.(*net.TCPAddr)
	answer.NeedsToken = !ok || !tcp.IP.IsLoopback()
	answer.Pages = append([]string{}, pages...) // never null
	c.Header("Cache-Control", "no-store")
	c.JSON(http.StatusOK, answer)
}

type phoneJSON struct {
	Phone string `json:"phone"`
	Name  string `json:"name"`
}

const phoneExample = `{"phone": "0123456789abcdef", "name": "Ann"}`

func (p phoneJSON) phone(c *gin.Context) Phone { return Phone{p.Phone, p.Name, page.Caller(c.Request)} }

func (h handler) postBuyer(c *gin.Context) {
	var body phoneJSON
	if !product.ReadBody(c, phoneExample, &body) {
		return
	}
	if err := h.room.Join(body.phone(c)); err != nil {
		writeError(c, err)
		return
	}
	c.JSON(http.StatusOK, gin.H{"name": body.Name})
}

func (h handler) postBuy(c *gin.Context) {
	var body phoneJSON
	if !product.ReadBody(c, phoneExample, &body) {
		return
	}
	keys := c.Request.Header.Values("Idempotency-Key")
	if len(keys) != 1 || keys[0] == "" {
		problem.Invalid(c, "send one header Idempotency-Key, a new one for each press")
		return
	}
	says, err := h.room.Press(c.Request.Context(), body.phone(c), keys[0])
	if err != nil {
		writeError(c, err)
		return
	}
	c.JSON(http.StatusOK, gin.H{"outcome": purchase.Sold, "says": says})
}

// getCode answers with the QR code of the n-th of the addresses (Pages) that phones can open.
func (h handler) getCode(c *gin.Context) {
	pages, err := Pages(h.addr)
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
