#!/usr/bin/env bash
# Runs `make test`, or `make quick` or `make soak` with that argument, as parts one after another, and ends
# with a table: seconds, processor seconds and result of each part, and the sums in units of U.
#
# U is the processor time of `go build -a -o /dev/null ./cmd/shop` on this machine, so results of
# machines of different speed can be compared. It is measured once for each Go version and kept in the
# user's cache folder; the sums do not contain this measurement. U=160 gives another value.
set -uo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
TIMEFORMAT='%R %U %S'

# part NAME COMMAND... runs one part in its own process, with its output on this terminal.
part() {
	local name=$1 code
	shift
	echo "=== $name" >&2
	{ time "$@" >&3 2>&4 </dev/null; } 3>&1 4>&2 2>"$work/time"
	code=$?
	echo "$name $code $(tail -n 1 "$work/time")" >>"$work/results"
	return "$code"
}

# in_dir DIR COMMAND... runs a command in a module of its own.
in_dir() { (cd "$1" && shift && "$@"); }

known=${XDG_CACHE_HOME:-$HOME/.cache}/oversell/U-$(go env GOVERSION)
[ -n "${U:-}" ] || [ ! -e "$known" ] || U=$(cat "$known")

# build builds the shop and the servers of the tests.
build() {
	go mod download || return
	part build go build -o "$work/shop" ./cmd/shop || return
	go build -o "$work/testservers" ./internal/engine/enginetest/testservers
}

# unit measures U if it is not known yet.
unit() {
	[ -z "${U:-}" ] || return 0
	echo "=== measure U, once for this machine" >&2
	U=$({ time env -u GOGC go build -a -o /dev/null ./cmd/shop >&2; } 2>&1 | awk 'END {print int($2 + $3 + 0.5)}')
	mkdir -p "$(dirname "$known")" && echo "$U" >"$known"
}

# table prints the results, and fails if a part failed.
table() {
	echo
	awk -v U="${U:-0}" '
		BEGIN { printf "%-24s %8s %10s  %s\n", "part", "seconds", "processor", "result" }
		{
			printf "%-24s %8.0f %10.0f  %s\n", $1, $3, $4 + $5, $2 == 0 ? "ok" : "FAILED"
			wall += $3; processor += $4 + $5; failed += $2 != 0
		}
		END {
			printf "%-24s %8.0f %10.0f  %s\n", "all", wall, processor, failed ? "FAILED" : "ok"
			if (U > 0) printf "in U (%d s):%*s %8.1f %10.1f\n", U, 12 - length(U), "", wall / U, processor / U
			exit failed > 0
		}' "$work/results"
}

# The test programs have 3 GB, and each test server creates its files. In memory, the tests of
# internal/explore/program need a quarter less processor time. The account of PostgreSQL passes through the folder.
if [ -z "${TMPDIR:-}" ] && [ "${1:-test}" != soak ] && [ "$(df --output=avail /dev/shm 2>/dev/null | tail -n 1)" -gt 6000000 ] 2>/dev/null &&
	[ "$(awk '/^MemAvailable/ {print $2}' /proc/meminfo)" -gt 8000000 ]; then
	memory=/dev/shm/o$UID # always the same, so that go test reuses results; short: a path of a socket has 107 bytes
	mkdir "$memory" 2>/dev/null || memory=$(mktemp -d -p /dev/shm oXXX) # another run has it
	trap 'rm -rf "$work" "$memory"' EXIT
	chmod 711 "$memory"
	if cp "$(type -P true)" "$memory" && "$memory/true"; then export TMPDIR=$memory; fi # not with noexec
fi

export GOGC=400 # memory is cheaper here than time: the explorer's tests take a fifth less of it
strip=-ldflags='-s -w'

# The race detector runs where goroutines of ours meet: the shop, its locks and the load. Searches
# have one goroutine at a time; make soak races them. SQLite and its C library have their memory
# outside the Go heap, where the race detector and checkptr would find nothing.
race=(-race -gcflags=all=-dwarf=false # no debugger needs these programs
	'-gcflags=modernc.org/sqlite/lib=-dwarf=false -race=false -d=checkptr=0'
	'-gcflags=modernc.org/libc=-dwarf=false -race=false -d=checkptr=0')
export GORACE=atexit_sleep_ms=0 # otherwise each process sleeps for a second before it ends
raced=$(go list ./rlock ./locktest ./internal/purchase/... ./internal/lockstrategy/... ./internal/load/... ./internal/web/... ./internal/teach/room ./internal/teach/live/...)

# servers COMMAND... lends the servers of make test to the command.
servers() { "$work/testservers" -sets 3 "$@"; }

# Three packages run at a time, and three parallel tests of each, since most tests wait for servers, leases
# and pauses.
tests() { servers go test "$strip" -vet=off -p 3 -parallel 3 -timeout "$1" "${@:2}"; }

if [ "${1:-test}" != quick ]; then
	build || { # go build has printed the reason
		echo "make ${1:-test}: FAILED: build"
		exit 1
	}
	export OVERSELL_SHOP_BIN=$work/shop
fi

case ${1:-test} in
quick)
	slow=$(go run -C tools ./tiers slow) # linking their tests, only to skip them, would take seconds
	part tests go test "$strip" -short -vet=off -p 4 -timeout 10m $(go list ./... | grep -vxF "$slow")
	;;
test)
	part raced tests 30m "${race[@]}" $raced
	part tests tests 30m $(go list ./... | grep -vxF "$raced")
	if command -v chromium >/dev/null; then part live-page in_dir e2e go test -run '^TestLivePage$' ./...; fi
	;;
soak)
	export OVERSELL_SOAK=1
	go build "${race[@]}" -o "$work/shop-race" ./cmd/shop || exit
	export OVERSELL_SHOP_RACE_BIN=$work/shop-race
	part tests tests 180m ./...
	part raced tests 180m "${race[@]}" ./...
	part e2e in_dir e2e go test -timeout 80m -count=1 ./...
	part locktest-bench in_dir locktest/bench go test -timeout 80m ./...
	part trackrecord-libraries in_dir trackrecord/libraries go test -timeout 80m .
	part trackrecord-fixed in_dir trackrecord/libraries go test -timeout 80m -modfile=fixed.mod .
	part trackrecord-etcd34 in_dir trackrecord/etcd34 go test -timeout 80m .
	part ci-jobs in_dir tools/runner go test -timeout 80m -count=1 -vet=off ./...
	part deploy make --no-print-directory deploy-check
	part release make --no-print-directory release-check
	;;
esac
[ "${1:-test}" = quick ] || unit
table
