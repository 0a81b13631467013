package runs

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"mime"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/web/problem"
)

// Routes adds the routes of runs (bursts of buyers that the page starts). The handler `admin` guards the
// routes that start or stop a run or inject a fault.
func (k *Keeper) Routes(r gin.IRouter, admin gin.HandlerFunc) {
	r.GET("/live/runs", func(c *gin.Context) {
		c.JSON(http.StatusOK, gin.H{"runs": k.Summaries(), "faults": append([]Fault{}, k.sender.Faults()...)})
	})
	h := handler{k}
	r.GET("/live/runs/:name", h.one)
	r.POST("/live/runs", admin, h.start)
	r.POST("/live/strikes", admin, h.strike)
	r.POST("/live/stop", admin, onlyJSON, h.stop)
}

type handler struct{ keeper *Keeper }

// onlyJSON refuses a request whose content type is not JSON, even if it has no body. A page of another site
// cannot send this type: the browser would first ask the shop for permission, which the shop does not give.
func onlyJSON(c *gin.Context) {
	media, _, err := mime.ParseMediaType(c.GetHeader("Content-Type"))
	if err != nil || media != "application/json" {
		c.Header("Accept", "application/json")
		problem.Write(c, http.StatusUnsupportedMediaType, "failed", "send Content-Type: application/json")
	}
}

func (h handler) start(c *gin.Context) {
	r := Request{Product: "apple", Stock: 100, Buyers: 200, Processes: 1}
	if !product.ReadBody(c, `{"strategies": ["redis"]}`, &r) {
		return
	}
	if err := h.keeper.sender.Check(&r); err != nil {
		problem.Invalid(c, err.Error())
		return
	}
	run, err := h.keeper.Start(r)
	if err != nil {
		refuse(c, err)
		return
	}
	c.JSON(http.StatusAccepted, run)
}

func (h handler) strike(c *gin.Context) {
	var body struct {
		Fault string `json:"fault"`
	}
	if !product.ReadBody(c, `{"fault": "crash"}`, &body) {
		return
	}
	if err := h.keeper.sender.CheckFault(body.Fault); err != nil {
		problem.Invalid(c, err.Error())
		return
	}
	if err := h.keeper.StrikeNow(body.Fault); err != nil {
		refuse(c, err)
		return
	}
	c.JSON(http.StatusAccepted, gin.H{"status": "the fault is injected as soon as a buyer holds the lock"})
}

func (h handler) stop(c *gin.Context) {
	if err := h.keeper.Stop(); err != nil {
		refuse(c, err)
		return
	}
	c.JSON(http.StatusAccepted, gin.H{"status": "stopping"})
}

func refuse(c *gin.Context, err error) {
	status := http.StatusConflict
	if errors.Is(err, errEnds) {
		status = http.StatusServiceUnavailable
		c.Header("Retry-After", "5")
	}
	problem.Write(c, status, "failed", err.Error())
}

// one answers with a run as JSON or, if the name ends in .html, as a page.
func (h handler) one(c *gin.Context) {
	id, asPage := strings.CutSuffix(c.Param("name"), ".html")
	run, ok := h.keeper.Run(id)
	if !ok {
		problem.Write(c, http.StatusNotFound, "failed", "there is no such run; GET /live/runs lists the last ones, and they end with the shop")
		return
	}
	if !asPage {
		c.JSON(http.StatusOK, run)
		return
	}
	var page bytes.Buffer
	if err := run.Page(&page); err != nil {
		_ = c.Error(err)
		problem.Write(c, http.StatusInternalServerError, "failed", "the page could not be written")
		return
	}
	c.Header("Content-Security-Policy", "default-src 'none'; style-src '"+styleHash(page.Bytes())+"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	c.Header("X-Content-Type-Options", "nosniff")
	c.Data(http.StatusOK, "text/html; charset=utf-8", page.Bytes())
}

// styleHash returns the hash by which a browser accepts the page's inline style. The style is
// inline, since the page must be complete as a file.
func styleHash(page []byte) string {
	_, rest, _ := bytes.Cut(page, []byte("<style>"))
	style, _, _ := bytes.Cut(rest, []byte("</style>"))
	sum := sha256.Sum256(style)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
