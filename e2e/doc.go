// Package e2e drives the shop's pages in Chromium. It is a module of its own, so that nobody
// who builds the shop needs a browser's protocol.
//
//	cd e2e && go test -count=1 ./...
//
// Without -count=1, go test would repeat its last result: it does not see that the shop has
// changed. The tests need /usr/bin/chromium (apt-get install chromium) and npm, for axe-core.
// Screenshots are written where OVERSELL_SCREENSHOTS names a folder.
package e2e
