package engine

import (
	"net/url"
	"testing"
)

// TestTLSName: the certificate is checked against the host of the URL.
func TestTLSName(t *testing.T) {
	u, err := url.Parse("mysql://shop:secret@db.example:3307/shop?tls=true")
	if err != nil {
		t.Fatal(err)
	}
	c, err := mysqlConfig(u)
	if err != nil {
		t.Fatal(err)
	}
	if c.TLS == nil || c.TLS.ServerName != "db.example" || c.Addr != "db.example:3307" {
		t.Errorf("TLS %+v to %s", c.TLS, c.Addr)
	}
}
