package main

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/web/problem"
)

// ready answers whether every server that is configured answers.
func (s *shop) ready(c *gin.Context) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), s.deadline)
	defer cancel()
	down := s.engine.Check(ctx)
	if len(down) == 0 {
		c.JSON(http.StatusOK, gin.H{"status": "ready"})
		return
	}
	var what []string
	for _, server := range slices.Sorted(maps.Keys(down)) {
		what = append(what, "the "+server+" is down: "+down[server].Error())
	}
	c.Header("Retry-After", "1")
	problem.Write(c, http.StatusServiceUnavailable, "failed", strings.Join(what, "; "))
}

// databaseDown asks the database for a sign of life, for all who want to know at
// the same time.
func (s *shop) databaseDown(ctx context.Context) error {
	_, err, _ := s.asking.Do("database", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.deadline)
		defer cancel()
		return nil, s.engine.Admin.WithContext(ctx).Exec("SELECT 1").Error
	})
	if err != nil {
		return &purchase.Unavailable{Server: "database", Err: err}
	}
	return nil
}
