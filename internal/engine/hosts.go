package engine

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// parseHosts parses a URL with several hosts, h1:1,h2:2, as url.Parse does. Host then contains all of them.
func parseHosts(text string) (*url.URL, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	begin := strings.LastIndex(rest[:end], "@") + 1
	hosts := strings.Split(rest[begin:end], ",")
	if !ok || len(hosts) == 1 {
		return url.Parse(text)
	}
	for _, host := range hosts {
		if _, err := url.Parse(scheme + "://" + host); err != nil {
			return nil, err
		}
	}
	u, err := url.Parse(scheme + "://" + rest[:begin] + hosts[0] + rest[end:])
	if err == nil {
		u.Host = strings.Join(hosts, ",")
	}
	return u, err
}

// addresses returns the host:port of each entry in a list such as h1:1,h2, without duplicates.
func addresses(list, port string) (all []string, _ error) {
	seen := map[string]bool{}
	for host := range strings.SplitSeq(list, ",") {
		name, number, err := net.SplitHostPort(host)
		if err != nil {
			name, number = strings.Trim(host, "[]"), port
		}
		address := net.JoinHostPort(name, number)
		switch {
		case name == "" || number == "":
			return nil, fmt.Errorf("%q is not a host; use host:%s,host:%[2]s", host, port)
		case seen[address]:
			return nil, fmt.Errorf("%s occurs twice", address)
		}
		seen[address] = true
		all = append(all, address)
	}
	return all, nil
}

// errUnencoded shows no part of the URL, since any part may belong to the password.
var errUnencoded = errors.New("unexpected @ after the hosts; in user and password, percent-encode / (%2F), ? (%3F), # (%23) and @ (%40)")

// strayAt reports whether an @ comes after the hosts. Then a password contains an unencoded slash, question
// mark or hash, and the parser takes the rest of the password for hosts and a path.
func strayAt(text string) bool {
	scheme, rest, _ := strings.Cut(text, "://")
	if scheme == "unix" { // a file name may contain @
		return false
	}
	i := strings.IndexAny(rest, "/?#")
	return i >= 0 && strings.Contains(rest[i:], "@")
}

// noneBefore reports whether no other @ comes before the one that strayAt found. A database URL may have
// further @ in its query, and these are valid.
func noneBefore(text string) bool {
	_, rest, _ := strings.Cut(text, "://")
	i := strings.IndexAny(rest, "/?#")
	return i >= 0 && !strings.Contains(rest[:i], "@")
}

// hostList is a parsed URL of several Redis servers.
type hostList struct {
	user, password string
	hosts          []string // host:port
	path           string   // path without its first slash
	query          url.Values
}

// parseHostList parses scheme://[user:password@]host[:port],host,.../path?query. Its errors never
// contain the password.
func parseHostList(text, port string) (l hostList, err error) {
	if strayAt(text) {
		return l, errUnencoded
	}
	u, err := parseHosts(text)
	if err != nil { // the text of err would show the password
		return l, errors.New("cannot read the URL; in user and password, percent-encode everything except letters, digits and -._~")
	}
	if l.query, err = url.ParseQuery(u.RawQuery); err != nil {
		return l, errors.New("cannot read the parameters after the question mark")
	}
	l.user, l.path = u.User.Username(), strings.TrimPrefix(u.Path, "/")
	l.password, _ = u.User.Password()
	l.hosts, err = addresses(u.Host, port)
	return l, err
}
