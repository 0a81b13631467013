// Package e2e drives the shop's pages in Chromium. It is a separate module, so that a build of the
// shop does not need a browser's protocol.
//
//	cd e2e && go test -count=1 ./...
//
// Without -count=1, go test repeats its last result, since it does not notice that the shop has
// changed. The tests need /usr/bin/chromium (apt-get install chromium) and npm, for axe-core.
package e2e
