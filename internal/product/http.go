package product

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"
	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/problem"
)

// Shelf is what the routes need.
type Shelf struct {
	DB *gorm.DB
	// Restock resets a product with its records and locks. It reaches beyond
	// this room, so it is handed in.
	Restock func(ctx context.Context, name string, amount int64) error
	// WriteError answers with an error of the database.
	WriteError func(c *gin.Context, err error)
}

// Routes adds GET /product, GET /product/:name and, behind admin, PUT
// /product/:name.
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
	p, err := ByName(s.DB.WithContext(c.Request.Context()), name)
	if err != nil {
		s.WriteError(c, err)
		return
	}
	c.JSON(http.StatusOK, p)
}

func (s Shelf) put(c *gin.Context) {
	name := c.Param("name")
	if err := CheckName(name); err != nil {
		problem.Invalid(c, "product "+err.Error())
		return
	}
	if name == "buy" {
		problem.Invalid(c, `a product cannot be called "buy": /product/buy is where one buys`)
		return
	}
	amount, err := restockAmount(c.Request)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		problem.Write(c, http.StatusRequestEntityTooLarge, "failed", fmt.Sprintf("the body is larger than %d bytes", tooLarge.Limit))
		return
	case err != nil:
		problem.Invalid(c, err.Error())
		return
	}
	if err := s.Restock(c.Request.Context(), name, amount); err != nil {
		s.WriteError(c, err)
		return
	}
	c.JSON(http.StatusOK, Product{Name: name, Amount: amount, Stocked: amount})
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
		return 0, fmt.Errorf("amount is %d; 0 to %d are allowed", *body.Amount, MaxStock)
	}
	return *body.Amount, nil
}

// ReadJSON decodes a body that must be one JSON object with no member that v
// does not have, so that a misspelt "amout" is an error and not the default.
func ReadJSON(r *http.Request, v any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("the body is not the JSON that this route takes: %w", err)
	}
	if d.More() {
		return errors.New("the body goes on after its JSON object")
	}
	return nil
}
