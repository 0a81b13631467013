#!/bin/sh
# Measures what a shop sells, and refuses, while wrk asks again at once. wrk ignores Retry-After.
#
#   loadtest/overload.sh [STRATEGY]   # default: for-update; needs Go, MariaDB, wrk and curl
#
# Each line is a new shop with the same servers: admission control off, adaptive, or off with a plain limit
# of 256 buyers; then a product that is sold out, with and without the check.
set -eu
cd "$(dirname "$0")/.."
strategy=${1:-for-update} seconds=${SECONDS_EACH:-5}
dir=$(mktemp -d)
go build -o "$dir/shop" ./cmd/shop
trap 'kill "$shop" 2>/dev/null; rm -rf "$dir"' EXIT
shop=

# measure NAME STOCK CLIENTS FLAGS...
measure() {
	name=$1 stock=$2 clients=$3
	shift 3
	"$dir/shop" serve --addr 127.0.0.1:0 --engine local --log-level error "$@" >"$dir/out" &
	shop=$!
	until url=$(sed -n 's/^listening on //p' "$dir/out") && [ -n "$url" ]; do sleep 0.1; done
	curl -sf -X PUT --json "{\"amount\": $stock}" "$url/product/apple" >/dev/null
	wrk -t2 -c"$clients" -d"${seconds}s" --timeout 30s "$url/product/buy?purchaser=ann&lock=$strategy" >"$dir/wrk"
	sold=$(curl -s "$url/audit?product=apple" | sed 's/.*"records":\([0-9]*\).*/\1/')
	answered=$(sed -n 's/^Requests.sec: *\([0-9]*\).*/\1/p' "$dir/wrk")
	refused=$((answered - sold / seconds))
	[ "$refused" -ge 0 ] || refused=0 # buyers that were inside when wrk stopped
	memory=$(awk '/VmHWM/ {print int($2 / 1024)}' "/proc/$shop/status")
	printf '%-24s %7s %8s %12s %6s\n' "$name" "$clients" "$((sold / seconds))" "$refused" "$memory"
	kill "$shop" && wait "$shop" 2>/dev/null || true
}

printf '%-24s %7s %8s %12s %6s\n' "$strategy" clients sold/s 'refused/s' MB
for clients in 64 640 5000; do
	measure off 900000000 $clients --admission off
	measure adaptive 900000000 $clients --admission adaptive
	measure 'limit of 256' 900000000 $clients --admission off --max-inflight 256
done
measure 'sold out, with check' 0 256 --admission off --sold-out-check
measure 'sold out, without' 0 256 --admission off --sold-out-check=false
