#!/usr/bin/env bash
# Builds a release of the last commit without publishing it. It checks what goreleaser does not: the
# size of the programs, the installation by tools/ci/install.sh, which compares the checksum, the
# version and the stack traces of this machine's program, and `go install` of the commit.
set -euo pipefail
cd "$(dirname "$0")/../.."
module=github.com/oversell/oversell
largest=45000000 # bytes
commit=$(git rev-parse HEAD)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
	echo "release-check: $*" >&2
	exit 1
}

# names_build PROGRAM VERSION checks the version and the commit that `shop version` prints.
names_build() {
	local prints
	prints=$("$1" version)
	[[ $prints == "shop $2"*"(commit ${commit:0:12}"* ]] || fail "$1 is \"$prints\"; want $2 of commit $commit"
}

goreleaser() { go tool -modfile=tools/release/go.mod goreleaser "$@"; }
goreleaser check --quiet
goreleaser release --snapshot --clean

large=$(find bin/release -mindepth 2 \( -name shop -o -name shop.exe \) -size "+${largest}c")
[ -z "$large" ] || fail "larger than $largest bytes:" $large

mkdir -p "$work/releases/latest"
ln -s "$PWD/bin/release" "$work/releases/latest/download"
(cd "$work" && OVERSELL_RELEASES=file://$work/releases OVERSELL_BIN=$work/release sh -s latest) <tools/ci/install.sh
names_build "$work/release/shop" "v$(sed -n 's/.*"version":"\([^"]*\)".*/\1/p' bin/release/metadata.json)"
[ -s "$work/release/install-servers.sh" ] || fail "the archive has no install-servers.sh"

# A Go program prints its stacks when it gets SIGQUIT.
timeout --signal=QUIT --kill-after=60 10 "$work/release/shop" serve --addr 127.0.0.1:0 >/dev/null 2>"$work/stacks" || true
grep -q 'cmd/shop/main\.go:[0-9]' "$work/stacks" || fail "a stack trace names no line: $(head -c 500 "$work/stacks")"

# git reads the module from this clone instead of GitHub. The other modules come from this machine's
# downloads if they are there.
GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=url.file://$PWD.insteadOf GIT_CONFIG_VALUE_0=https://$module \
	GOPRIVATE=$module GOPROXY=file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY) \
	GOMODCACHE=$work/mod GOBIN=$work/bin GOFLAGS='-trimpath -modcacherw' GOWORK=off \
	go install "$module/cmd/shop@$commit"
names_build "$work/bin/shop" v
echo "release-check: ok"
