package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/teach/room"
)

// availableStrategy is an entry of the catalogue, and whether it can run here.
type availableStrategy struct {
	lockstrategy.Entry
	Available bool   `json:"available"`
	Reason    string `json:"reason,omitempty"`
}

// strategies lists the catalogue.
func (s *shop) strategies(c *gin.Context) {
	var list []availableStrategy
	for _, e := range lockstrategy.All() {
		why := s.counter.Missing[e.Name]
		promised := promise.Promise{}
		for fault := range e.Promise {
			if v := e.Promised(fault, s.engine.Database); v != "" {
				promised[fault] = v
			}
		}
		e.Promise, e.PromiseOn = promised, nil // what holds here
		list = append(list, availableStrategy{e, why == "", why})
	}
	c.JSON(http.StatusOK, list)
}

// newRoom is a room that buys at this shop's counter, under each strategy that it can run.
func (s *shop) newRoom() *room.Room {
	config := room.Config{Sell: s.counter.Sell, Known: s.isProduct, Restock: s.restock}
	for _, e := range lockstrategy.All() {
		if _, here := s.counter.Strategies[e.Name]; here {
			config.Strategies = append(config.Strategies, room.Strategy{Name: e.Name, Tells: soldTells(e.Name)})
		}
	}
	return room.New(config)
}

// isProduct says why there is no such product, or nil.
func (s *shop) isProduct(ctx context.Context, name string) error {
	_, err := product.ByName(s.engine.DB.WithContext(ctx), name)
	if errors.Is(err, product.ErrNotFound) {
		return fmt.Errorf("%w as %q; GET /product lists them, and PUT /product/NAME creates one", product.ErrNotFound, name)
	}
	return purchase.DatabaseError(ctx, "put on sale", err)
}
