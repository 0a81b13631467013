package testbed

// Shops contains the processes of one shop, by index.
type Shops []*ShopProcess

// Links returns the links of each process to its lock servers.
func (all Shops) Links() []Links {
	links := make([]Links, len(all))
	for i, shop := range all {
		links[i] = shop.Links
	}
	return links
}
