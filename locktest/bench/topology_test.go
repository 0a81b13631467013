package main

import (
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/tier"
	"github.com/oversell/oversell/locktest"
)

// TestConformanceOfTopologies: the locks keep their claims on a primary behind sentinels and on a
// cluster. make test runs two of them on the cluster.
func TestConformanceOfTopologies(t *testing.T) {
	t.Parallel() // it waits for leases most of the time
	soak := tier.Soaking()
	for _, built := range []string{topology.Cluster, topology.Sentinel} {
		if built == topology.Sentinel && !soak {
			continue // for a client, this is a single server
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
						if got.Verdict != want && got.Verdict != locktest.Unchecked { // FrozenServer is unchecked here
							t.Errorf("%s\nwant %s", got, want)
						}
						t.Log(got)
					}
				})
			}
		})
	}
}
