package product_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/web/problem"
)

// shelf is a shop with only the routes of this package.
func shelf(t *testing.T) *httptest.Server {
	t.Helper()
	gin.SetMode(gin.ReleaseMode)
	db := enginetest.Embedded(t).DB
	router := gin.New()
	router.Use(func(c *gin.Context) { c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, 1000) })
	product.Shelf{
		DB: db,
		Restock: func(ctx context.Context, name string, amount int64) error {
			return product.Put(db.WithContext(ctx), name, amount)
		},
		WriteError: func(c *gin.Context, err error) {
			status := http.StatusInternalServerError
			if errors.Is(err, product.ErrNotFound) {
				status = http.StatusNotFound
			}
			problem.Write(c, status, "failed", err.Error())
		},
	}.Routes(router, func(c *gin.Context) {
		if c.GetHeader("Authorization") != "Bearer secret" {
			problem.Write(c, http.StatusUnauthorized, "failed", "no token")
		}
	})
	server := httptest.NewServer(router)
	t.Cleanup(server.Close)
	return server
}

func do(t *testing.T, method, url, body string, header ...string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	var text strings.Builder
	require.NoError(t, response.Write(&text))
	_, answer, _ := strings.Cut(text.String(), "\r\n\r\n")
	return response.StatusCode, answer
}

// TestRestock tests the routes as a client uses them.
func TestRestock(t *testing.T) {
	url := shelf(t).URL
	token := []string{"Authorization", "Bearer secret"}
	if status, _ := do(t, http.MethodPut, url+"/product/pear", `{"amount": 7}`); status != http.StatusUnauthorized {
		t.Errorf("without the token: %d", status)
	}
	if status, body := do(t, http.MethodGet, url+"/product/pear", ""); status != http.StatusNotFound {
		t.Errorf("before it was put: %d %s", status, body)
	}
	const pear = `{"name":"pear","amount":7,"stocked":7}`
	for _, method := range []string{http.MethodPut, http.MethodGet} {
		if status, body := do(t, method, url+"/product/pear", `{"amount": 7}`, token...); status != http.StatusOK || body != pear {
			t.Errorf("%s: %d %s, want %s", method, status, body, pear)
		}
	}
	var list struct{ Products []product.Product }
	status, body := do(t, http.MethodGet, url+"/product", "")
	if err := json.Unmarshal([]byte(body), &list); err != nil || status != http.StatusOK || !strings.Contains(body, pear) {
		t.Errorf("%d %s, %v", status, body, err)
	}
	for _, c := range []struct {
		path, body string
		status     int
		says       string
	}{
		{"/product/buy", `{"amount": 7}`, http.StatusBadRequest, "/product/buy is a route"},
		{"/product/%20pear", `{"amount": 7}`, http.StatusBadRequest, "white space"},
		{"/product/pear", `{"amount": -1}`, http.StatusBadRequest, "between 0 and 1000000000"},
		{"/product/pear", `{"amount": 1000000001}`, http.StatusBadRequest, "between 0 and 1000000000"},
		{"/product/pear", `{"amount": 1.5}`, http.StatusBadRequest, "not the JSON"},
		{"/product/pear", `{}`, http.StatusBadRequest, "amount is missing"},
		{"/product/pear", `{"amount": 7` + strings.Repeat(" ", 1000) + `}`, http.StatusRequestEntityTooLarge, "larger than 1000 bytes"},
	} {
		status, body := do(t, http.MethodPut, url+c.path, c.body, token...)
		if status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s %.30s: %d %s; want %d with %q", c.path, c.body, status, body, c.status, c.says)
		}
	}
	if _, body := do(t, http.MethodGet, url+"/product/pear", ""); body != pear {
		t.Errorf("after refused restocks: %s", body)
	}
	if status, body := do(t, http.MethodPut, url+"/product/pear", `{"amount": 0}`, token...); status != http.StatusOK {
		t.Errorf("an empty shelf: %d %s", status, body)
	}
}

type order struct {
	Amount  *int64  `json:"amount"`
	Product *string `json:"product"`
}

func readJSON(body string) (order, error) {
	var o order
	return o, product.ReadJSON(httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)), &o)
}

// TestReadJSON: bodies that encoding/json would misread are refused.
func TestReadJSON(t *testing.T) {
	for body, says := range map[string]string{
		`{"amount": 7}`:                        "",
		` {"amount": 7, "product": "x"} `:      "",
		`{}`:                                   "",
		`{"amount": 7, "amount": 8}`:           "amount occurs twice",
		`{"Amount": 7}`:                        `unknown member "Amount"`,
		`{"amout": 7}`:                         "amout",
		`{"amount": null}`:                     "amount is null",
		`{"amount": "7"}`:                      "not the JSON",
		`{"amount": 7} {"amount": 8}`:          "not one JSON object",
		`{"amount": 7}]`:                       "not one JSON object",
		`[{"amount": 7}]`:                      "not one JSON object",
		`7`:                                    "not one JSON object",
		`null`:                                 "not one JSON object",
		``:                                     "not one JSON object",
		`   `:                                  "not one JSON object",
		"{\"product\": \"\xff\"}":              "not UTF-8",
		`{"product": {"a": 1, "a": 2}}`:        "not the JSON",
		`{"amount": 9223372036854775808}`:      "not the JSON",
		`{"\u0061mount": 7, "amount": 8}`:      "amount occurs twice",
		`{"amount": 7, "x": {"amount": null}}`: "x",
	} {
		_, err := readJSON(body)
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", body, err, says)
		}
	}
}

// FuzzReadJSON: no input causes a panic, and an accepted input has the value that encoding/json
// reads.
func FuzzReadJSON(f *testing.F) {
	f.Add(`{"amount": 7, "product": "x"}`)
	f.Add(`{"amount": 7, "amount": null}`)
	f.Add("")
	f.Fuzz(func(t *testing.T, body string) {
		got, err := readJSON(body)
		if err != nil {
			return
		}
		var want order
		require.NoError(t, json.Unmarshal([]byte(body), &want), body, "was accepted")
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want)
		expect.Equal(t, string(a), string(b), body)
	})
}
