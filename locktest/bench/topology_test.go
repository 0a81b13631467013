package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/tier"

	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/locktest"
)

// TestConformanceOfTopologies: the locks keep their claims on a primary behind sentinels and on a
// cluster. make test runs two of them on the cluster.
func TestConformanceOfTopologies(t *testing.T) {
	t.Parallel() // it waits for leases most of the time
	soak := tier.Soaking()
	for _, built := range []string{topology.Cluster, topology.Sentinel} {
		if built == topology.Sentinel && !soak {
			continue // to a client it is one server, at an address that it asks for
		}
		t.Run(built, func(t *testing.T) {
			srv := newServers(t, built)
			for _, k := range kinds() {
				if !k.anywhere || !soak && !strings.HasPrefix(k.name, "rlock") {
					continue
				}
				t.Run(k.name, func(t *testing.T) {
					t.Parallel()
					for _, c := range locktest.Checks() {
						got := c.Examine(t.Context(), srv.subject(k, ttl))
						want, _ := expected(k, c.Name)
						if got.Verdict != want && got.Verdict != locktest.Unchecked { // it is not frozen
							t.Errorf("%s\nwant %s", got, want)
						}
						t.Log(got)
					}
				})
			}
		})
	}
}

// BenchmarkTopologies measures handovers on one server, on a primary with two replicas, and on a
// cluster in turn, and their ratios to the one server. It uses a lock that is polled and one that
// notifies.
//
//	go test -run '^$' -bench Topologies -benchtime 5x .
func BenchmarkTopologies(b *testing.B) {
	var servers []*server
	for _, built := range topology.All() {
		servers = append(servers, newServers(b, built))
	}
	for _, name := range []string{"redislock-1ms", "rlock"} {
		for _, processes := range []int{1, 4} {
			b.Run(fmt.Sprintf("%s/%d", name, processes), func(b *testing.B) {
				k, err := kindOf(name)
				if err != nil {
					b.Fatal(err)
				}
				sums := make([]float64, len(servers))
				for b.Loop() {
					for i, srv := range servers {
						f, err := locktest.Measure(b.Context(), srv.subject(k, 0), locktest.Load{
							Contenders: 16, Processes: processes, For: time.Second,
						})
						if err != nil || f.Overlaps > 0 {
							b.Fatalf("%v, %d overlaps", err, f.Overlaps)
						}
						sums[i] += f.HandoversPerSecond
					}
				}
				for i, built := range topology.All() {
					b.ReportMetric(sums[i]/float64(b.N), built+"/s")
					if i > 0 {
						b.ReportMetric(sums[i]/sums[0], built+"-ratio")
					}
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
