.PHONY: help rush serve verify quick test soak planted servers lint vuln generate bench workshop build
.DEFAULT_GOAL := help

TOOL := go tool -modfile=tools/go.mod

help: ## show this list
	@grep -hE '^[a-z0-9]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

rush: ## a crowd on every strategy, nothing to install
	go run ./cmd/shop rush

serve: ## the shop and its live page on http://127.0.0.1:8080
	go run ./cmd/shop serve

verify: servers ## every strategy under every fault on real servers, and the pages docs/matrix*.md
	go build -o bin/shop ./cmd/shop
	bin/shop verify --engine local --report docs/matrix.md
	bin/shop verify --engine local --local-db postgres --report docs/matrix-postgres.md
	bin/shop verify --engine local --local-db galera --report docs/matrix-galera.md
	bin/shop verify --engine local --local-db galera-one-writer --report docs/matrix-galera-one-writer.md
	bin/shop verify --engine local --local-redis sentinel --report docs/matrix-sentinel.md
	bin/shop verify --engine local --local-redis cluster --report docs/matrix-cluster.md

quick: ## all that needs no server: before each push
	go vet ./...
	go test -short -vet=off -p 4 ./locktest ./... # locktest mostly waits: it begins first

test: servers ## install the servers where it can, then lint and test everything, with -race
	@tools/test.sh

soak: servers ## the searches and repetitions that are too long for make test
	loadtest/k6/check.sh # builds k6, which takes minutes
	OVERSELL_SOAK=1 go test -vet=off -timeout 180m ./...

planted: servers ## plant bugs in a copy, run what must catch each; a quarter of an hour. PATCH="a b" for some
	@go run ./trackrecord/planted $(PATCH)

servers: ## install MariaDB, PostgreSQL, PgBouncer, Redis, ZooKeeper, etcd and Chromium, or print how to
	@tools/install-servers.sh

# What gosec is not asked, each for a reason that holds for all of its finds here; a single one has its
# reason in its line (#nosec). Its command would bring gRPC and cloud clients, so tools/gosec calls its library.
#   G104  an error that nobody looks at: strings.Builder has none
#   G115  a conversion that may lose bits: of lengths that are bounded, and of fields of protocols and hashes, whose bits are meant
#   G204  a command with a variable: this program starts servers, shops, and the command that its user gives
#   G301 G302 G306  files that others may read: reports and histories, which are for people, behind the umask
#   G304  a file with a variable: the user names it by a flag, or it is below /proc or a folder of our own
#   G404  math/rand: for pauses, ports, loads, and numbers that need only differ; what nobody may guess is of crypto/rand
.PHONY: gosec
gosec:
	go run -C tools ./gosec $(CURDIR) G104 G115 G204 G301 G302 G304 G306 G404

.PHONY: prose
prose: ## the language of pages and comments, and the links between pages
	go test -C tools ./prose
	go run -C tools ./prose $(CURDIR)

lint: gosec prose ## go vet, staticcheck, gofumpt, gosec, prose; no tracked file above 1 MB
	@tools/check-sizes.sh
	go vet ./...
	$(TOOL) staticcheck ./...
	@test -z "$$($(TOOL) gofumpt -l $$(git ls-files '*.go'))" || { $(TOOL) gofumpt -d $$(git ls-files '*.go'); exit 1; }

vuln: gosec ## known vulnerabilities in the code that is called (asks vuln.go.dev), and gosec
	$(TOOL) govulncheck ./...

generate: servers ## write all that follows from the code; STRATEGY=NAME also measures a new strategy for docs/reference/throughput.md
	go generate ./internal/fault ./internal/lockstrategy # what the rest is compiled with
	$(if $(STRATEGY),go test ./cmd/shop -run TestSizeReference -timeout 60m -measure $(STRATEGY))
	go generate ./internal/teach/... ./internal/explore/... ./cmd/...

bench: servers ## the benchmarks of docs/reference/benchmarks.md; takes an hour
	OVERSELL_BENCH_RECORDS=$${OVERSELL_BENCH_RECORDS:-10000000} go test -run '^$$' -bench . -benchtime 1x -timeout 120m ./...
	cd locktest/bench && go run . -markdown

workshop: ## what docs/workshop.md needs on this machine: looked at, fetched, compiled
	@tools/workshop.sh

build: ## bin/shop
	go build -o bin/shop ./cmd/shop
