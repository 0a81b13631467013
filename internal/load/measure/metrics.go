package measure

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/oversell/oversell/internal/load/buyers"
)

// Metrics returns the metrics of a shop as text, or "" if it does not show them.
func Metrics(ctx context.Context, url string) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/metrics", nil)
	if err != nil {
		return ""
	}
	client := buyers.NewClient(nil)
	defer client.Close()
	return string(client.Send(ctx, request).Body)
}

// Metric returns the value of a metric in the text, or 0 if it is missing. The name includes the labels.
func Metric(text, name string) float64 {
	_, text, _ = strings.Cut(text, "\n"+name+" ")
	text, _, _ = strings.Cut(text, "\n")
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return value
}
