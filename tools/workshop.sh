#!/usr/bin/env bash
# `make workshop` runs this script. It checks this machine for each part of
# docs/guides/run-a-workshop.md, fetches and compiles what the part needs, and names the parts
# that are ready. It shows a missing program with the command that installs it. Exit code: 0 if
# every part is ready, else 1.
set -uo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/usr/local/sbin
ready=() missing=()
current=

have() { command -v "$1" >/dev/null 2>&1; }
ok() { printf '  ok       %s\n' "$1"; }
lacks() { printf '  missing  %s\n' "$1"; fit=no; }
note() { printf '  note     %s\n' "$1"; }

# finish files the current part under ready or missing.
finish() {
	if [ -n "$current" ]; then
		if [ "$fit" = yes ]; then ready+=("$current"); else missing+=("$current"); fi
	fi
	current=
}

part() {
	finish
	current=$1 fit=yes
	printf '%s:\n' "$current"
}

# named lists parts after a heading, one a line.
named() {
	local heading=$1
	shift
	[ $# = 0 ] || { printf '%s\n' "$heading"; printf '  - %s\n' "$@"; }
}

# quietly runs a step, and shows its output only if it fails.
quietly() {
	local what=$1 out
	shift
	if out=$("$@" 2>&1); then ok "$what"; else
		lacks "$what"
		printf '%s\n' "$out" | tail -n 5 | sed 's/^/           /'
	fi
}

# offline runs a command that must not use the network.
offline() { GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local "$@"; }

# exercise_compiles checks that a learner's new exercise compiles without the network. The exercise is
# not solved yet, so the check must end with exit code 1.
exercise_compiles() {
	local folder code=0
	folder=$(mktemp -d)
	offline ./shop exercise start 1 "$folder/first" || code=2
	[ "$code" = 2 ] || offline ./shop exercise check "$folder/first" || code=$?
	rm -rf "$folder"
	[ "$code" = 1 ]
}

# clients installs the packages of examples/node unless they are up to date: npm ci removes them first.
clients() {
	[ examples/node/node_modules/.package-lock.json -nt examples/node/package-lock.json ] ||
		npm ci --silent --no-audit --no-fund --prefix examples/node
}

free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# serves reports whether the program on a port is a shop, by its OpenAPI document.
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
		lacks "a browser for the projector: sudo apt-get install chromium"
	fi
}

database() {
	if have mariadbd || have mysqld; then ok "MariaDB or MySQL"; else lacks "MariaDB or MySQL: make servers"; fi
}

redis() {
	if have redis-server || have valkey-server; then ok "Redis"; else lacks "Redis: make servers"; fi
}

# explored checks the requirements of shop explore --app, which runs the exercises in other languages.
explored() {
	if [ "$(uname -s)" = Linux ]; then ok "Linux"; else lacks "Linux"; fi
	database
	redis
}

part "the 90 minutes"
if have go; then
	wanted=$(sed -n 's/^go \([0-9]*\.[0-9]*\).*/\1/p' go.mod)
	found=$(go env GOVERSION)
	if [ "$(printf '%s\n' "go$wanted" "$found" | sort -V | head -n 1)" = "go$wanted" ]; then ok "Go: $found"; else lacks "Go $wanted or later, not $found: https://go.dev/dl"; fi
else
	lacks "Go: https://go.dev/dl, or your system's package golang"
fi
quietly "./shop, compiled" go build -o shop ./cmd/shop
quietly "a rush on the embedded engine" ./shop rush --strategy for-update --expect
browser
if free 8080; then
	ok "port 8080"
elif serves 8080; then
	ok "port 8080: your shop serve uses it; stop it before minute 5, or use it"
else
	lacks "port 8080: another program uses it; stop it, or give shop serve another --addr"
fi
note "phones must be in the network of this machine; they scan the code at /room/screen"

part "exercises in Go"
quietly "an exercise, compiled without the network" exercise_compiles

part "exercises 1 to 4 in Node"
explored
if have node && have npm; then quietly "Node and its clients" clients; else lacks "Node and npm: make servers"; fi

part "exercises 1 to 4 in Python"
explored
if python3 -c 'import pymysql, redis' 2>/dev/null; then
	ok "Python with pymysql and redis"
else
	lacks "pymysql and redis for $(command -v python3 || echo python3): make servers, or pip install pymysql redis"
fi

part "real servers, real faults"
database
redis

finish
echo
named "ready, also without a network:" ${ready[@]+"${ready[@]}"}
named "not ready; install what is missing above:" ${missing[@]+"${missing[@]}"}
[ ${#missing[@]} = 0 ]
