package testbed

import (
	"context"
)

// Shops has the processes of one shop, by index.
type Shops []*Shop

// URLs returns the present address of each process.
func (all Shops) URLs() []string {
	urls := make([]string, len(all))
	for i, shop := range all {
		urls[i] = shop.URL()
	}
	return urls
}

// Links returns the links of each process to its lock servers.
func (all Shops) Links() []Links {
	links := make([]Links, len(all))
	for i, shop := range all {
		links[i] = shop.Links
	}
	return links
}

// The methods below apply to one process.

func (all Shops) Kill(process int) error                       { return all[process].Kill() }
func (all Shops) Start(ctx context.Context, process int) error { return all[process].Start(ctx) }
func (all Shops) Ended(process int) bool                       { return all[process].Ended() }
