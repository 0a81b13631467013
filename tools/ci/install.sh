#!/bin/sh
# Prepares a CI job or a laptop for `shop ci`: gets the program and the servers that it needs.
#
#   tools/ci/install.sh [VERSION [FLAG...]] # the program, and then the servers
#   curl -fsSL URL | sh -s v1               # the same without a checkout
#
# FLAG is a flag of shop ci, such as --app FILE. A result that --cache has needs no server.
#
# VERSION is v1.2.3 for that release, v1 for the newest release if its version begins with 1, or
# latest (the default). The script verifies the archive by the release's checksums.txt. Without such
# a release it runs go build in the checkout that contains it. action.yml takes single steps:
#
#   tools/ci/install.sh release VERSION     # only a release; without one, exits with 0 and no program
#   tools/ci/install.sh build               # only go build
#   tools/ci/install.sh servers [FLAG...]   # only the servers
#
# Variables:
#   OVERSELL_BIN       folder for the program (default .oversell)
#   OVERSELL_RELEASES  base URL of the releases, also file:// or a mirror
set -eu
releases=${OVERSELL_RELEASES:-https://github.com/oversell/oversell/releases}
bin=${OVERSELL_BIN:-.oversell} # not the current folder, whose own program may be called shop
mkdir -p "$bin"
bin=$(cd "$bin" && pwd)
case $0 in
*install.sh) tools=$(cd "$(dirname "$0")/.." && pwd) ;;
*) tools= ;; # a pipe: no checkout
esac

fail() {
	echo "install.sh: $*" >&2
	exit 2
}

get() { curl -fsSL --retry 3 --connect-timeout 10 -o "$2" "$1"; }

# release VERSION puts the program of a release into $bin. It returns 1 if there is no such release
# for this system, and ends the script if the archive is not the one that checksums.txt names. Its
# callers test the result, which turns set -e off, so each command here has its own check.
release() {
	version=$1
	from=$releases/latest/download prefix=
	case $version in
	latest) ;;
	v[0-9] | v[0-9][0-9]) prefix=${version#v}\\. ;; # a moving tag, which has no release of its own
	*) from=$releases/download/$version prefix=${version#v}_ ;;
	esac
	case $(uname -sm) in
	"Linux x86_64") system=linux_amd64 ;;
	"Linux aarch64") system=linux_arm64 ;;
	"Darwin x86_64") system=darwin_amd64 ;;
	"Darwin arm64") system=darwin_arm64 ;;
	*) return 1 ;;
	esac
	new=$(mktemp -d)
	trap 'rm -rf "$new"' EXIT
	get "$from/checksums.txt" "$new/checksums.txt" 2>/dev/null || return 1
	line=$(grep "  shop_$prefix.*$system.tar.gz\$" "$new/checksums.txt") || return 1
	archive=${line##* }
	get "$from/$archive" "$new/$archive" || fail "cannot download $from/$archive"
	(cd "$new" && echo "$line" | if command -v sha256sum >/dev/null; then sha256sum -c -; else shasum -a 256 -c -; fi) >&2 ||
		fail "$from/$archive does not have the checksum of checksums.txt; nothing was installed"
	tar -xzf "$new/$archive" -C "$new" && mv "$new/shop" "$bin/shop" || fail "cannot unpack $archive into $bin"
	[ ! -e "$new/install-servers.sh" ] || mv "$new/install-servers.sh" "$bin/"
	found
}

build() {
	[ -n "$tools" ] || fail "no release $1 for $(uname -sm) at $releases"
	command -v go >/dev/null || fail "no release $1 for $(uname -sm) at $releases; install Go to build the program"
	go build -C "$tools/.." -trimpath -buildvcs=false -o "$bin/shop" ./cmd/shop
	found
}

# found names the program to the later steps of a job in GitHub Actions.
found() {
	built=$("$bin/shop" --version) || fail "$bin/shop does not run on this system"
	echo "install.sh: $built in $bin" >&2
	[ -z "${GITHUB_OUTPUT-}" ] || echo "shop=$bin/shop" >>"$GITHUB_OUTPUT"
	[ -z "${GITHUB_PATH-}" ] || echo "$bin" >>"$GITHUB_PATH"
}

servers() {
	needs=$("$bin/shop" ci --needs "$@")
	[ -z "$needs" ] || {
		installer=$bin/install-servers.sh
		[ -e "$installer" ] || installer=$tools/install-servers.sh
		# shellcheck disable=SC2086 # a list of words
		sh "$installer" $needs
	}
	[ "${CI-}" = true ] || return 0
	unlock
}

# unlock lifts two rules of Ubuntu that stop the search. It only runs on a CI machine, as root: AppArmor
# denies user namespaces to programs without a profile, and denies mysqld all folders except its own.
unlock() {
	root=
	[ "$(id -u)" -eq 0 ] || root='sudo -n'
	setting=kernel.apparmor_restrict_unprivileged_userns
	[ "$(cat "/proc/sys/kernel/${setting#kernel.}" 2>/dev/null)" != 1 ] || $root sysctl -qw "$setting=0" || true
	profile=/etc/apparmor.d/usr.sbin.mysqld
	[ ! -e "$profile" ] || ! command -v apparmor_parser >/dev/null || $root apparmor_parser -R "$profile" 2>/dev/null || true
}

case ${1-} in
release) release "${2:-latest}" || echo "install.sh: no release ${2:-latest} for $(uname -sm) at $releases" >&2 ;;
build) build "${2:-}" ;;
servers)
	shift
	servers "$@"
	;;
*)
	version=${1:-latest}
	[ $# -eq 0 ] || shift
	release "$version" || build "$version"
	if [ $# -gt 0 ] || [ -e oversell.yaml ]; then servers "$@"; fi # without a file, shop ci says so
	;;
esac
