package localserver

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Etcd is a running etcd cluster of one member. Its Addr is a value for --etcd. After a kill and a
// restart it still has its data, and its leases start again with their full time.
type Etcd struct{ Server }

// URL returns the other form that --etcd accepts.
func (e *Etcd) URL() string { return "http://" + e.Addr }

// StartEtcd starts one member that syncs its writes to the disk, which is etcd's default. It returns
// ErrMissing if etcd is not installed.
func StartEtcd(g *Group) (*Etcd, error) {
	path, err := findProgram("apt-get install etcd-server, or brew install etcd", "etcd")
	if err != nil {
		return nil, err
	}
	in, err := g.newFolder("etcd", nil)
	if err != nil {
		return nil, err
	}
	return onFreePort(g, func(port int) (*Etcd, error) {
		peerPort, err := g.port()
		if err != nil {
			return nil, err
		}
		e := &Etcd{newServer(g, "etcd", in, port)}
		e.probe = e.ping
		// A member that failed to start may already have written its peer address.
		data, peer := in.file("data-"+strconv.Itoa(port)), "http://"+loopback(peerPort)
		e.command = []string{
			path, "--name", "shop", "--data-dir", data, "--log-level", "error",
			"--logger", "zap", "--log-outputs", "stderr",
			"--listen-client-urls", e.URL(), "--advertise-client-urls", e.URL(),
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "shop=" + peer,
		}
		return e, e.Start()
	})
}

// ping checks /health, which is 200 once the member has a leader and can read.
func (e *Etcd) ping() error {
	client := http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(e.URL() + "/health")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("/health was answered with %s", answer.Status)
	}
	return nil
}
