package deps

import "github.com/oversell/oversell/internal/purchase"

// The servers that a strategy may use besides the database, named as on the command
// line and in the errors that buyers see.
const (
	Redis     = "redis"
	Redlock   = "redlock" // the independent nodes, taken as one
	Zookeeper = "zookeeper"
	Etcd      = "etcd"
)

// Failed says which server did not do what a strategy asked of it: a
// *purchase.Unavailable, or nil when err is nil.
func Failed(server string, err error) error {
	if err == nil {
		return nil
	}
	return &purchase.Unavailable{Server: server, Err: err}
}
