package product

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"
	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/web/problem"
)

// restockTimeout limits one restock, which may have to delete millions of records: a million takes about 10 s.
const restockTimeout = 10 * time.Minute

// A Shelf serves the product routes.
type Shelf struct {
	DB *gorm.DB
	// Restock resets a product, its records and its locks. The caller supplies the function, since records and
	// locks belong to other packages.
	Restock func(ctx context.Context, name string, amount int64) error
	// WriteError answers with an error of the database.
	WriteError func(c *gin.Context, err error)
}

// Routes adds GET /product, GET /product/:name and PUT /product/:name. The handler `admin` protects the PUT.
func (s Shelf) Routes(r gin.IRouter, admin gin.HandlerFunc) {
	r.GET("/product", s.list)
	r.GET("/product/:name", s.one)
	r.PUT("/product/:name", admin, s.put)
}

func (s Shelf) list(c *gin.Context) {
	products, err := List(s.DB.WithContext(c.Request.Context()))
	if err != nil {
		s.WriteError(c, err)
		return
	}
	c.JSON(http.StatusOK, gin.H{"products": products})
}

func (s Shelf) one(c *gin.Context) {
	name := c.Param("name")
	if err := CheckName(name); err != nil {
		problem.Invalid(c, "product "+err.Error())
		return
	}
	p, err := WithParts(s.DB.WithContext(c.Request.Context()), name)
	if err != nil {
		s.WriteError(c, err)
		return
	}
	c.JSON(http.StatusOK, p)
}

// CheckForSale returns an error if the name of a product to restock is invalid.
func CheckForSale(name string) error {
	if err := CheckName(name); err != nil {
		return fmt.Errorf("product %w", err)
	}
	if name == "buy" {
		return errors.New(`a product cannot have the name "buy", because /product/buy is a route`)
	}
	return nil
}

func (s Shelf) put(c *gin.Context) {
	name := c.Param("name")
	if err := CheckForSale(name); err != nil {
		problem.Invalid(c, err.Error())
		return
	}
	if !isJSON(c.Request.Header) {
		c.Header("Accept", "application/json")
		problem.Write(c, http.StatusUnsupportedMediaType, "failed", `send Content-Type: application/json and {"amount": 100}`)
		return
	}
	amount, err := restockAmount(c.Request)
	if err != nil {
		writeUnread(c, err)
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), restockTimeout)
	defer cancel()
	// The server's write timeout is for buys, and a restock may take longer.
	if err := http.NewResponseController(c.Writer).SetWriteDeadline(time.Now().Add(restockTimeout + time.Minute)); err != nil {
		s.WriteError(c, err)
		return
	}
	if err := s.Restock(ctx, name, amount); err != nil {
		s.WriteError(c, err)
		return
	}
	c.JSON(http.StatusOK, Product{Name: name, Amount: amount, Stocked: amount})
}

// isJSON reports whether the request declares a JSON body, or no type. The check helps callers that send
// something else by mistake, such as a form. It is not needed against pages of another origin: a browser does
// not send their PUT unless the shop allows it.
func isJSON(h http.Header) bool {
	said := h.Values("Content-Type")
	if len(said) == 0 {
		return true
	}
	media, _, err := mime.ParseMediaType(said[0])
	return err == nil && len(said) == 1 && media == "application/json"
}

// restockAmount reads {"amount": n} with n in 0..MaxStock and nothing else.
func restockAmount(r *http.Request) (int64, error) {
	var body struct {
		Amount *int64 `json:"amount"`
	}
	if err := ReadJSON(r, &body); err != nil {
		return 0, err
	}
	if body.Amount == nil {
		return 0, errors.New(`amount is missing; send {"amount": 100}`)
	}
	if *body.Amount < 0 || *body.Amount > MaxStock {
		return 0, fmt.Errorf("amount must be between 0 and %d (got %d)", MaxStock, *body.Amount)
	}
	return *body.Amount, nil
}

// ReadBody reads the JSON body of a request into v. If that fails, it answers with the error and returns
// false. The request must declare JSON, since a page of another origin cannot send that type. The parameter
// `example` is a valid body, for the error message.
func ReadBody(c *gin.Context, example string, v any) bool {
	if said := c.Request.Header.Values("Content-Type"); len(said) == 0 || !isJSON(c.Request.Header) {
		c.Header("Accept", "application/json")
		problem.Write(c, http.StatusUnsupportedMediaType, "failed", "send Content-Type: application/json and "+example)
		return false
	}
	err := ReadJSON(c.Request, v)
	if err != nil {
		writeUnread(c, err)
	}
	return err == nil
}

func writeUnread(c *gin.Context, err error) {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		problem.Write(c, http.StatusRequestEntityTooLarge, "failed", fmt.Sprintf("the body is larger than %d bytes", tooLarge.Limit))
	case errors.Is(err, os.ErrDeadlineExceeded):
		problem.Write(c, http.StatusRequestTimeout, "failed", "the body did not come in time")
	default:
		problem.Invalid(c, err.Error())
	}
}

// ReadJSON decodes a body into v. The body must be one JSON object in UTF-8. Each member must have exactly
// the name of a field of v, occur once and not be null. So a misspelled "amout", a second "amount" or a null
// one is an error. encoding/json would accept all of these.
func ReadJSON(r *http.Request, v any) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return fmt.Errorf("read the body: %w", err)
	}
	if !utf8.Valid(body) {
		return errors.New("the body is not UTF-8")
	}
	if err := checkMembers(body); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("the body is not the JSON that this route takes: %w", err)
	}
	return nil
}

func checkMembers(body []byte) error {
	notOne := errors.New("the body is not one JSON object")
	if !json.Valid(body) || bytes.TrimSpace(body)[0] != '{' {
		return notOne
	}
	d := json.NewDecoder(bytes.NewReader(body))
	seen := map[string]bool{}
	for _, err := d.Token(); d.More(); { // the decoder has read the opening brace
		name, wrong := d.Token()
		var value json.RawMessage
		if err = errors.Join(err, wrong, d.Decode(&value)); err != nil {
			return errors.Join(notOne, err)
		}
		member, _ := name.(string)
		switch {
		case seen[member]:
			return fmt.Errorf("%s occurs twice", member)
		case member != strings.ToLower(member): // encoding/json would accept it as the lower-case name
			return fmt.Errorf("unknown member %q", member)
		case string(value) == "null":
			return fmt.Errorf("%s is null; leave it out or give it a value", member)
		}
		seen[member] = true
	}
	return nil
}
