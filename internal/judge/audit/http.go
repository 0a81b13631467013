package audit

import (
	"net/http"

	"github.com/gin-gonic/gin"
	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/web/problem"
)

// Routes adds the route GET /audit?product=NAME.
func Routes(r gin.IRouter, db *gorm.DB) {
	r.GET("/audit", func(c *gin.Context) {
		name := c.DefaultQuery("product", purchase.DefaultProduct)
		if err := product.CheckName(name); err != nil {
			problem.Invalid(c, "product "+err.Error())
			return
		}
		report, err := Read(c.Request.Context(), db, name)
		if err != nil {
			purchase.WriteError(c, err)
			return
		}
		c.JSON(http.StatusOK, report)
	})
}
