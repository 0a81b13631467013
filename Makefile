.PHONY: help rush serve verify quick test soak planted servers lint vuln generate bench workshop build
.DEFAULT_GOAL := help

TOOL := go tool -modfile=tools/go.mod

help: ## print this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

rush: ## send a burst of buyers to every strategy; needs no server
	go run ./cmd/shop rush

serve: ## start the shop and its live page on http://127.0.0.1:8080
	go run ./cmd/shop serve

verify: all-servers ## play every strategy under every fault on real servers; write docs/reference/matrix and bin/matrix
	go build -o bin/shop ./cmd/shop
	mkdir -p bin/matrix
	bin/shop verify --engine local --report docs/reference/matrix/mariadb.md --report bin/matrix/mariadb.json
	bin/shop verify --engine local --local-db postgres --report docs/reference/matrix/postgres.md --report bin/matrix/postgres.json
	bin/shop verify --engine local --local-db galera --report docs/reference/matrix/galera.md --report bin/matrix/galera.json
	bin/shop verify --engine local --local-redis sentinel --report docs/reference/matrix/sentinel.md --report bin/matrix/sentinel.json
	bin/shop verify --engine local --local-redis cluster --report docs/reference/matrix/cluster.md --report bin/matrix/cluster.json

quick: ## test everything that needs no server; run it before each commit
	@tools/test.sh quick

test: servers ## install the servers if possible, then run the strongest test of each part on them
	@tools/test.sh

soak: all-servers ## run all tests: long searches, full matrices, raced searches, the release; takes hours
	@tools/test.sh soak

planted: all-servers ## plant bugs in a copy and run what must catch each; 15 minutes; PATCH="a b" for some
	@go run ./trackrecord/planted $(PATCH)

servers: ## install MariaDB, PostgreSQL, Redis, Node and Python if they are missing, or print the commands
	@tools/install-servers.sh

.PHONY: all-servers
all-servers: # also Galera, PgBouncer, ZooKeeper, etcd, HAProxy and Chromium
	@tools/install-servers.sh soak

# Rules that gosec skips, with the reason. Single exceptions have their reason in the line (#nosec).
# The gosec command needs gRPC and cloud clients, so tools/gosec calls its library.
#   G104  unchecked error: strings.Builder returns none
#   G115  conversion that may lose bits: lengths are bounded; protocol fields and hashes want the low bits
#   G204  command from a variable: this program starts servers, shops, and the user's command
#   G301 G302 G306  files that other users may read: reports and histories are for people, behind the umask
#   G304  file from a variable: the user names it by a flag, or it is below /proc or our own folder
#   G404  math/rand: for pauses, ports and loads; secrets use crypto/rand
.PHONY: gosec
gosec:
	go run -C tools ./gosec $(CURDIR) G104 G115 G204 G301 G302 G304 G306 G404

.PHONY: prose
prose: # check the language of pages and comments, and all links
	go test -C tools -count=1 -vet=off ./prose

lint: ## run gofumpt, prose, vet, staticcheck and gosec; reject files above 1 MB
	@tools/check-sizes.sh
	@test -z "$$($(TOOL) gofumpt -l $$(git ls-files '*.go'))" || { $(TOOL) gofumpt -d $$(git ls-files '*.go'); exit 1; }
	go run -C tools ./tiers | diff docs/reference/tests.md - # else make generate
	@$(MAKE) --no-print-directory prose
	go vet ./...
	@set -e; for mod in $$(git ls-files '*/go.mod'); do case $$mod in loadtest/*|tools/release/*) continue ;; esac; echo go -C $${mod%/go.mod} vet ./...; go -C $${mod%/go.mod} vet ./...; done
	$(TOOL) staticcheck ./...
	@$(MAKE) --no-print-directory gosec

vuln: gosec ## search known vulnerabilities in called code (asks vuln.go.dev); run gosec
	$(TOOL) govulncheck ./...

generate: all-servers ## write everything that follows from the code
	go generate ./internal/fault ./internal/lockstrategy # the rest is compiled with these
	go generate ./internal/teach/... ./internal/explore/... ./cmd/... ./docs
	go run -C tools ./tiers >docs/reference/tests.md

bench: all-servers ## run the benchmarks of docs/reference/benchmarks.md
	loadtest/overload.sh
	go test -run '^$$' -bench . -benchtime 1x ./rlock ./internal/lockstrategy
	cd locktest/bench && go run . -markdown

workshop: ## prepare this machine for docs/guides/run-a-workshop.md, and name the parts that are ready
	@tools/workshop.sh

.PHONY: release-check
release-check: all-servers # build a release of the last commit without publishing it, and check it; the first run takes 20 minutes
	tools/release/check.sh
	go test -tags nopgxregisterdefaulttypes -run TestPooler ./internal/engine # the shop's own table of types

.PHONY: deploy-check
deploy-check: # read the files for Docker, Kubernetes and HAProxy as these tools do
	go test -C deploy/check ./...
	PATH=$$PATH:/usr/sbin haproxy -c -q -f deploy/scale/haproxy.cfg

build: ## build bin/shop
	go build -o bin/shop ./cmd/shop
