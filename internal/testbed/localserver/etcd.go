package localserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Etcd is a running member of an etcd cluster. Its Addr is a value for --etcd. After a kill and a restart the
// member still has its data. When the cluster elects a new leader, each lease starts again with its full time.
type Etcd struct{ Server }

// URL returns the address as a URL. The flag --etcd accepts both forms.
func (e *Etcd) URL() string { return "http://" + e.Addr }

// StartEtcd starts a cluster of one member that syncs its writes to the disk, which is etcd's default.
// It returns ErrMissing if etcd is not installed.
func StartEtcd(g *Group) (*Etcd, error) {
	all, err := startEtcds(g, 1)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// StartEtcdCluster starts a cluster of three members, and returns when each of them has a leader. A follower
// becomes a candidate after a second without its leader, which is etcd's default. StartEtcdCluster returns
// ErrMissing if etcd is not installed.
//
// Source: etcd documentation, v3.4, "Clustering Guide", Static, and "Tuning".
func StartEtcdCluster(g *Group) ([]*Etcd, error) { return startEtcds(g, Members) }

func startEtcds(g *Group, members int) ([]*Etcd, error) {
	path, err := findProgram("apt-get install etcd-server, or brew install etcd", "etcd")
	if err != nil {
		return nil, err
	}
	return onFreePorts(g, 2*members, func(ports []int) ([]*Etcd, error) {
		var cluster []string
		for i := range members {
			cluster = append(cluster, fmt.Sprintf("shop-%d=http://%s", i+1, loopback(ports[2*i+1])))
		}
		return startAll(members, func(i int) (*Etcd, error) {
			in, err := g.newFolder("etcd", nil)
			if err != nil {
				return nil, err
			}
			e := &Etcd{newServer(g, "etcd", in, ports[2*i])}
			e.probe = e.ping
			name, peer, _ := strings.Cut(cluster[i], "=")
			e.command = []string{
				path, "--name", name, "--data-dir", in.file("data"), "--log-level", "error",
				"--logger", "zap", "--log-outputs", "stderr",
				"--listen-client-urls", e.URL(), "--advertise-client-urls", e.URL(),
				"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", strings.Join(cluster, ","),
			}
			return e, e.Start()
		})
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

// Leads reports whether the member says that it leads its cluster. It is false if the member does not
// answer within a second.
//
// Source: etcd documentation, v3.4, "gRPC gateway", and the method Status of the service Maintenance.
func (e *Etcd) Leads() bool {
	client := http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Post(e.URL()+"/v3/maintenance/status", "application/json", strings.NewReader("{}"))
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	var status struct {
		Header struct {
			Member string `json:"member_id"`
		}
		Leader string
	}
	err = json.NewDecoder(answer.Body).Decode(&status)
	return err == nil && status.Leader != "" && status.Leader == status.Header.Member
}
