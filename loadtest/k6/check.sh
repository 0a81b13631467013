#!/bin/sh
# Runs rush.js against a real shop: a broken strategy and one that holds end with
# 0, and a broken one that must hold ends with 99.
set -eu
cd "$(dirname "$0")"
export K6_NO_USAGE_REPORT=true
dir=$(mktemp -d)
(cd ../.. && go build -o "$dir/shop" ./cmd/shop)
"$dir/shop" serve --addr 127.0.0.1:0 >"$dir/out" 2>"$dir/log" &
shop=$!
trap 'kill "$shop" 2>/dev/null; wait "$shop" 2>/dev/null || true; rm -rf "$dir"' EXIT
until grep -q '^listening on ' "$dir/out"; do
	kill -0 "$shop" || { cat "$dir/log" >&2; exit 1; }
	sleep 0.1
done
url=$(sed -n 's/^listening on //p' "$dir/out")

# expect CODE ENVIRONMENT...
expect() {
	want=$1
	shift
	got=0
	go tool k6 run --quiet -e BASE_URL="$url" "$@" rush.js >"$dir/k6" 2>&1 || got=$?
	if [ "$got" -ne "$want" ]; then
		cat "$dir/k6" >&2
		echo "k6 $*: exit $got, want $want" >&2
		exit 1
	fi
}
expect 0 -e STRATEGY=none
expect 0 -e STRATEGY=conditional
expect 99 -e STRATEGY=none -e PROMISE=holds
expect 99 -e STRATEGY=conditional -e BUYERS=50
expect 108 -e STRATEGY=magic
echo "k6: ok"
