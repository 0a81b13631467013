#!/usr/bin/env bash
# What `make test` runs once the servers are installed: every part, in two lanes
# side by side. The tests of this module, with the race detector, are the one;
# everything else, part after part, is the other. So no more than two parts share
# the machine at a time, and a part that is slow in company is no more so than on a
# machine with half the cores.
#
# The first lane prints as it goes. The output of the other parts follows in one
# piece each; the last lines name what failed.
set -uo pipefail
cd "$(dirname "$0")/.."
logs=$(mktemp -d)

# part NAME COMMAND... runs one part of the second lane, its output in a file.
part() {
	local name=$1 code=0 start=$SECONDS
	shift
	"$@" >"$logs/$name.log" 2>&1 </dev/null || code=$?
	echo "$code $((SECONDS - start)) $name" >>"$logs/parts"
}

# in_dir DIR COMMAND... for a module of its own.
in_dir() { (cd "$1" && shift && "$@"); }

verify_quick() { go build -o bin/shop ./cmd/shop && bin/shop verify --quick; }

others() {
	part lint make --no-print-directory lint
	part verify-quick verify_quick
	part locktest-bench in_dir locktest/bench go test ./...
	part trackrecord-libraries in_dir trackrecord/libraries go test -parallel 8 .
	part trackrecord-fixed in_dir trackrecord/libraries go test -parallel 8 -modfile=fixed.mod .
	part trackrecord-etcd34 in_dir trackrecord/etcd34 go test .
	part composecheck in_dir deploy/composecheck go test ./...
	part k6 loadtest/k6/check.sh
}

others &
lane=$!
trap 'kill "$lane" 2>/dev/null; wait "$lane"; rm -rf "$logs"' EXIT
trap 'exit 130' INT TERM

start=$SECONDS
code=0
go test -race -vet=off -timeout 20m ./... || code=$? # lint runs all of go vet
race="$code $((SECONDS - start)) go-test-race"

wait "$lane"
failed=
while read -r code seconds name; do
	echo
	echo "=== $name: ${seconds} s, exit $code"
	[ -e "$logs/$name.log" ] && cat "$logs/$name.log"
	[ "$code" -eq 0 ] || failed="$failed $name"
done < <(cat "$logs/parts"; echo "$race")
echo
if [ -n "$failed" ]; then
	echo "make test: FAILED:$failed (${SECONDS} s)"
	exit 1
fi
echo "make test: ok (${SECONDS} s)"
