package engine

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// ProcessVariable is the environment variable of Config.Process.
const ProcessVariable = "SHOP_PROCESS"

// DetoursVariable is the environment variable of Config.Detours, "host:port=host:port,...".
const DetoursVariable = "SHOP_DIAL"

// Environ returns the environment variables that make a child process open the same servers.
func (c Config) Environ() []string {
	return []string{
		"SHOP_DB_URL=" + c.DB, "SHOP_REDIS_URL=" + c.Redis, "SHOP_REDLOCK_URLS=" + strings.Join(c.Redlock, ","),
		"SHOP_ZOOKEEPER_HOSTS=" + strings.Join(c.Zookeeper, ","), "SHOP_ETCD_HOSTS=" + strings.Join(c.Etcd, ","),
		DetoursVariable + "=" + c.Detours.String(), ProcessVariable + "=" + strconv.Itoa(c.Process),
	}
}

// FromEnviron reads the variables of Environ.
func FromEnviron() (Config, error) {
	c := Config{DB: os.Getenv("SHOP_DB_URL"), Redis: os.Getenv("SHOP_REDIS_URL")}
	for _, list := range []struct {
		name string
		to   *[]string
	}{{"SHOP_REDLOCK_URLS", &c.Redlock}, {"SHOP_ZOOKEEPER_HOSTS", &c.Zookeeper}, {"SHOP_ETCD_HOSTS", &c.Etcd}} {
		if text := os.Getenv(list.name); text != "" {
			*list.to = strings.Split(text, ",")
		}
	}
	var err error
	if c.Detours, err = ParseDetours(os.Getenv(DetoursVariable)); err != nil {
		return c, fmt.Errorf("%s: %w", DetoursVariable, err)
	}
	if text := os.Getenv(ProcessVariable); text != "" {
		if c.Process, err = strconv.Atoi(text); err != nil {
			return c, fmt.Errorf("%s must be a whole number from 0 (got %q)", ProcessVariable, text)
		}
	}
	return c, nil
}
