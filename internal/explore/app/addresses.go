package app

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func (a *App) servers(f *file) error {
	for _, s := range []struct {
		key, text string
		to        **Server
	}{{"mysql", f.MySQL, &a.MySQL}, {"postgres", f.Postgres, &a.Postgres}, {"redis", f.Redis, &a.Redis}} {
		if s.text == "" {
			continue
		}
		server, err := parseServer(s.key, s.text)
		if err != nil {
			return err
		}
		*s.to = server
		if f.Attach == nil {
			continue
		}
		if server.Gate = f.Attach.Gates[s.key]; server.Gate == "" {
			return fmt.Errorf("attach: gates needs %s: the address at which the program looks for it, different from the server's own", s.key)
		}
		if err := checkAddress("attach: gates: "+s.key, server.Gate); err != nil {
			return err
		}
		if server.Gate == server.Address {
			return fmt.Errorf("attach: gates: %s: %s is the server's own address; choose another port, and make the program use it", s.key, server.Gate)
		}
	}
	if f.Attach != nil {
		for name := range f.Attach.Gates {
			if a.server(name) == nil {
				return fmt.Errorf("attach: gates: %s: also set %[1]s, the server's own address", name)
			}
		}
	}
	if a.MySQL == nil && a.Postgres == nil && a.Redis == nil {
		return errors.New("set mysql, postgres or redis to the address that the program uses; without a server there is nothing to explore")
	}
	if a.Local && a.Attach != nil {
		return errors.New("local and attach cannot be combined: a running program cannot reach private servers")
	}
	if f.Schema != "" {
		if !a.Local {
			return errors.New("schema requires local: true; your own servers already have their tables")
		}
		a.Schema = filepath.Join(a.Dir, f.Schema)
		if filepath.IsAbs(f.Schema) {
			a.Schema = f.Schema
		}
		if _, err := schemaFiles(a.Schema); err != nil {
			return fmt.Errorf("schema: %w", err)
		}
	}
	if f.Migrate != "" && !a.Local {
		return errors.New("migrate requires local: true; your own servers already have their tables")
	}
	return nil
}

var schemes = map[string][]string{"mysql": {"mysql"}, "postgres": {"postgres", "postgresql"}, "redis": {"redis"}}

func parseServer(key, text string) (*Server, error) {
	if !strings.Contains(text, "://") {
		return &Server{Gate: text, Address: text}, checkAddress(key, text)
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: the value is not a URL", key) // the value may contain a password
	}
	switch {
	case !slices.Contains(schemes[key], u.Scheme):
		return nil, fmt.Errorf("%s: the URL must begin with %s://; TLS (rediss, mysqls) cannot be gated", key, schemes[key][0])
	case u.Query().Has("host"), u.Query().Has("hostaddr"):
		return nil, fmt.Errorf("%s: ?host= contradicts the host of the URL; put it into the URL", key)
	}
	if mode := u.Query().Get("sslmode"); mode != "" && mode != "disable" {
		return nil, fmt.Errorf("%s: sslmode=%s: TLS cannot be gated; use sslmode=disable", key, mode)
	}
	return &Server{Gate: u.Host, Address: u.Host, URL: text}, checkAddress(key, u.Host)
}

func checkAddress(key, address string) error {
	if strings.HasPrefix(address, "/") || strings.HasPrefix(address, "unix") {
		return fmt.Errorf("%s: %s: a gate cannot listen on a unix socket; connect the program to 127.0.0.1 and a port", key, address)
	}
	host, port, err := net.SplitHostPort(address)
	n, bad := strconv.Atoi(port)
	if err != nil || bad != nil || host == "" || n < 1 || n > 65535 {
		return fmt.Errorf("%s: %q is not host:port; expected, for example, 127.0.0.1:3306", key, address)
	}
	return nil
}

// Gate returns the host:port at which the program expects the server of a protocol; "" if oversell.yaml
// does not name that server.
func (a *App) Gate(protocol string) string {
	if s := a.server(protocol); s != nil {
		return s.Gate
	}
	return ""
}

func (a *App) server(protocol string) *Server {
	return map[string]*Server{"mysql": a.MySQL, "postgres": a.Postgres, "redis": a.Redis}[protocol]
}
