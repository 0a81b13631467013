package app

import (
	"errors"
	"regexp"
	"strings"
)

// word matches a word of a Redis command. A quoted word may contain spaces, or be empty.
var word = regexp.MustCompile(`"[^"]*"|'[^']*'|\S+`)

func (a *App) resetting(f *file) error {
	a.Reset.MySQL, a.Reset.Postgres = f.Reset.MySQL, f.Reset.Postgres
	if len(f.Reset.SQL) > 0 {
		switch {
		case a.MySQL != nil && a.Postgres != nil:
			return errors.New("reset: sql is ambiguous with two databases; use mysql and postgres instead")
		case a.MySQL != nil:
			a.Reset.MySQL = append(a.Reset.MySQL, f.Reset.SQL...)
		case a.Postgres != nil:
			a.Reset.Postgres = append(a.Reset.Postgres, f.Reset.SQL...)
		default:
			return errors.New("reset: sql needs a database; set mysql or postgres")
		}
	}
	switch {
	case len(a.Reset.MySQL) > 0 && a.MySQL == nil:
		return errors.New("reset: mysql needs the server; set mysql")
	case len(a.Reset.Postgres) > 0 && a.Postgres == nil:
		return errors.New("reset: postgres needs the server; set postgres")
	}
	lines, err := listOf("reset: redis", f.Reset.Redis)
	if err != nil {
		return err
	}
	if len(lines) > 0 && a.Redis == nil {
		return errors.New("reset: redis needs the server; set redis")
	}
	for _, line := range lines {
		words := word.FindAllString(line, -1)
		for i, w := range words {
			if len(w) > 1 && (w[0] == '"' || w[0] == '\'') {
				words[i] = w[1 : len(w)-1]
			}
		}
		switch {
		case len(words) == 0:
			return errors.New("reset: redis: an empty command")
		case strings.EqualFold(words[0], "select"):
			return errors.New("reset: redis: select is not supported; put the database number into the URL, redis://127.0.0.1:6379/1; flushall empties all")
		case strings.EqualFold(line, "flushdb"):
			a.Reset.Flush = true
		default:
			a.Reset.Redis = append(a.Reset.Redis, words)
		}
	}
	requests, list := f.Reset.HTTP.([]any)
	if !list && f.Reset.HTTP != nil {
		requests = []any{f.Reset.HTTP}
	}
	for _, one := range requests {
		r, err := request("reset: http", one)
		if err != nil {
			return err
		}
		a.Reset.HTTP = append(a.Reset.HTTP, r)
	}
	if len(a.Reset.MySQL)+len(a.Reset.Postgres)+len(lines)+len(requests) == 0 {
		return errors.New("reset is missing; list the statements that restore stock and orders before each run, for example sql: [ \"UPDATE items SET stock = 1\", \"DELETE FROM orders\" ]")
	}
	return nil
}
