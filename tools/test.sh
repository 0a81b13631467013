#!/usr/bin/env bash
# `make test` runs this script after it has installed the servers. Three lanes run side
# by side. The first runs the tests of this module with the race detector. The third runs
# the parts that wait for leases and timeouts. The second runs all other parts, one after
# another.
#
# The first lane prints as it goes. The output of the other parts follows in one
# piece each, and the last lines name the failed parts. A part without an exit code has failed:
# its lane may have been killed.
#
# Each lane is a process group, so that an interrupt also ends the processes of its parts.
set -uo pipefail
cd "$(dirname "$0")/.."
logs=$(mktemp -d)

# parts must all report. Their order is the order of the output.
parts=(lint locktest-bench trackrecord-libraries trackrecord-fixed trackrecord-etcd34
	composecheck kubecheck ci-jobs e2e go-test-race)

# part NAME COMMAND... runs one part, its output in a file.
part() {
	local name=$1
	shift
	report "$name" "$@" >"$logs/$name.log" 2>&1 </dev/null
}

# report NAME COMMAND... runs one part and reports its exit code.
report() {
	local name=$1 code=0 start=$SECONDS
	shift
	"$@" || code=$?
	echo "$code $((SECONDS - start))" >"$logs/$name.exit"
}

# in_dir DIR COMMAND... runs a command in a module of its own.
in_dir() { (cd "$1" && shift && "$@"); }

# TestVerifyQuick in cmd/shop also runs `shop verify --quick`, with a binary without the race
# detector.
#
# SQLite and its C library are compiled without the race detector and checkptr. Their memory is
# outside the Go heap, so both would check nothing, and took half of the explorer's time.
# RaceFlags in internal/judge/matrix returns the same flags.
#
# Without atexit_sleep_ms=0 the race detector sleeps for a second before a process ends.
race=(-race
	'-gcflags=modernc.org/sqlite/lib=-race=false -d=checkptr=0'
	'-gcflags=modernc.org/libc=-race=false -d=checkptr=0')
export GORACE=atexit_sleep_ms=0

# Memory is cheaper here than time: the tests of the explorer take a fifth less of it.
export GOGC=400

# A test that stands still ends with its own message. This limit is for the rest; go test's own, ten
# minutes, ended the browser's tests on a slow machine.
limit=(-timeout 80m)

# Two packages run at a time, and four parallel tests of each. The tests spend a third of their time
# waiting for servers and leases, so fewer would leave the cores idle. With more, a slow machine has
# 20 processes that wait for a core, and shops give up. The longest packages begin first.
tests() {
	report go-test-race go test "${race[@]}" \
		-vet=off -p 2 -parallel 4 "${limit[@]}" \
		./cmd/shop ./internal/explore ./internal/lockstrategy ./internal/explore/promisetest ./internal/explore/own \
		./... # lint runs all of go vet
}

# Each test binary that runs the shop uses one of these builds: the released program, or one with
# the race detector.
export OVERSELL_SHOP_BIN=$logs/shop OVERSELL_SHOP_RACE_BIN=$logs/shop-race
build() {
	go build -o "$OVERSELL_SHOP_BIN" ./cmd/shop &&
		go build "${race[@]}" -o "$OVERSELL_SHOP_RACE_BIN" ./cmd/shop
}

others() {
	part lint make --no-print-directory lint
	part composecheck in_dir deploy/composecheck go test "${limit[@]}" ./...
	part kubecheck in_dir deploy/kubecheck go test "${limit[@]}" ./...
	part ci-jobs in_dir tools/runner go test "${limit[@]}" -count=1 -vet=off ./...
	part e2e in_dir e2e go test "${limit[@]}" -count=1 ./...
}

waiting() {
	part locktest-bench in_dir locktest/bench go test "${limit[@]}" ./...
	part trackrecord-libraries in_dir trackrecord/libraries go test "${limit[@]}" -parallel 8 .
	part trackrecord-fixed in_dir trackrecord/libraries go test "${limit[@]}" -parallel 8 -modfile=fixed.mod .
	part trackrecord-etcd34 in_dir trackrecord/etcd34 go test "${limit[@]}" .
}

lanes=()
# stop ends the lanes and all processes that they started. It kills them after ten seconds.
stop() {
	trap - EXIT
	trap '' INT TERM
	local lane tries
	for lane in "${lanes[@]}"; do
		kill -TERM -- "-$lane" 2>/dev/null
	done
	for lane in "${lanes[@]}"; do
		for ((tries = 0; tries < 100; tries++)); do
			kill -0 -- "-$lane" 2>/dev/null || break
			sleep 0.1
		done
		kill -KILL -- "-$lane" 2>/dev/null
	done
	rm -rf "$logs"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

build || { # go build has printed the reason
	echo "make test: FAILED: build"
	exit 1
}
set -m # gives each lane a process group
for lane in tests others waiting; do
	$lane </dev/null &
	lanes+=($!)
done
set +m

failed=
for lane in "${!lanes[@]}"; do
	wait "${lanes[lane]}" || failed="$failed lane-$((lane + 1))"
done
for name in "${parts[@]}"; do
	echo
	code='' seconds=
	[ -e "$logs/$name.exit" ] && read -r code seconds <"$logs/$name.exit"
	if [ -z "$code" ]; then
		echo "=== $name: has not reported"
	else
		echo "=== $name: ${seconds} s, exit $code"
	fi
	[ -e "$logs/$name.log" ] && cat "$logs/$name.log"
	[ "$code" = 0 ] || failed="$failed $name"
done
echo
if [ -n "$failed" ]; then
	echo "make test: FAILED:$failed (${SECONDS} s)"
	exit 1
fi
echo "make test: ok (${SECONDS} s)"
