#!/usr/bin/env bash
# What `make workshop` runs: looks at what docs/workshop.md needs on the leader's machine, and
# fetches and compiles all of it, so that nothing asks the network afterwards. What is missing
# is named with the line that gets it. Exit code: 1 when the 90 minutes cannot be held so.
set -uo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/usr/local/sbin
missing=0

have() { command -v "$1" >/dev/null 2>&1; }
ok() { printf '  ok       %s\n' "$1"; }
lacks() { printf '  missing  %s\n' "$1"; missing=1; }
note() { printf "  note     %s\n" "$1"; }

# quietly runs a step; its output is shown where it fails.
quietly() {
	local what=$1 out
	shift
	if out=$("$@" 2>&1); then ok "$what"; else
		lacks "$what"
		printf '%s\n' "$out" | tail -n 5 | sed 's/^/           /'
	fi
}

# offline runs a command that may ask no network.
offline() { GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local "$@"; }

# exercised: an exercise compiles from the caches, as a learner's does. What is started is not
# solved, so it is judged as wrong: exit code 1.
exercised() {
	local folder code=0
	folder=$(mktemp -d)
	offline bin/shop exercise start 1 "$folder/first" || code=2
	[ "$code" = 2 ] || offline bin/shop exercise check "$folder/first" || code=$?
	rm -rf "$folder"
	[ "$code" = 1 ]
}

# clients of examples/node, unless they are there: npm ci begins by a removal.
clients() {
	[ examples/node/node_modules/.package-lock.json -nt examples/node/package-lock.json ] ||
		npm ci --silent --no-audit --no-fund --prefix examples/node
}

free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# serves: what listens on a port is a shop, by the document of its routes.
serves() {
	local said=
	{
		exec 3<>"/dev/tcp/127.0.0.1/$1" &&
			printf 'GET /openapi.yaml HTTP/1.0\r\n\r\n' >&3 &&
			{ IFS= read -r -d '' -t 5 said <&3 || true; }
		exec 3>&-
	} 2>/dev/null
	case $said in *'title: oversell'*) return 0 ;; esac
	return 1
}

browser() {
	local name
	for name in chromium chromium-browser google-chrome google-chrome-stable firefox firefox-esr microsoft-edge; do
		if have "$name"; then
			ok "a browser: $name"
			return
		fi
	done
	if [ -d "/Applications/Safari.app" ] || [ -d "/Applications/Google Chrome.app" ] || [ -d "/Applications/Firefox.app" ]; then
		ok "a browser, in /Applications"
	else
		lacks "a browser, for the projector: sudo apt-get install chromium"
	fi
}

echo "the 90 minutes:"
if have go; then
	wanted=$(sed -n 's/^go \([0-9]*\.[0-9]*\).*/\1/p' go.mod)
	found=$(go env GOVERSION)
	if [ "$(printf '%s\n' "go$wanted" "$found" | sort -V | head -n 1)" = "go$wanted" ]; then ok "Go: $found"; else lacks "Go $wanted or later; here is $found: https://go.dev/dl"; fi
else
	lacks "Go: https://go.dev/dl, or your system's package golang"
fi
quietly "bin/shop, compiled" go build -o bin/shop ./cmd/shop
quietly "a rush on the embedded engine" bin/shop rush --strategy for-update --expect
browser
if free 8080; then
	ok "port 8080"
elif serves 8080; then
	ok "port 8080: a shop serve of yours has it; end that before minute 5, or go on with it"
else
	lacks "port 8080 is taken by another program: end that, or give shop serve --addr another"
fi
note "phones: in the network of this machine; then shop serve --addr 0.0.0.0:8080, and the page shows the code to scan"

echo "half a day, too:"
quietly "an exercise, compiled without the network" exercised
if have mariadbd || have mysqld; then ok "MariaDB or MySQL, for --engine local"; else note "no MariaDB, for --engine local: make servers"; fi
if have redis-server || have valkey-server; then ok "Redis, for --engine local"; else note "no Redis, for --engine local: make servers"; fi
if have node && have npm; then
	quietly "Node and its clients, for exercises 1 to 4" clients
else
	note "no Node, for exercises 1 to 4 in it: make servers"
fi
if python3 -c 'import pymysql, redis' 2>/dev/null || /usr/bin/python3 -c 'import pymysql, redis' 2>/dev/null; then
	ok "Python with pymysql and redis, for exercises 1 to 4"
else
	note "no Python with pymysql and redis, for exercises 1 to 4 in it: make servers"
fi

if [ "$missing" = 0 ]; then
	echo "ready; nothing of it needs the network any more"
else
	echo "not ready: see what is missing above"
fi
exit "$missing"
