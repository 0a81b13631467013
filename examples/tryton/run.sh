#!/bin/sh
# Installs Tryton from Debian's packages, seeds it in a folder of its own, and explores its last unit:
#   examples/tryton/run.sh two-sales --budget 10m
#   examples/tryton/run.sh shelf --budget 3m
# SHOP is the tool (default ./shop). SHOP_DIR keeps the folder; by default it is deleted.
# Debian's packages also start services of their own, so use a container or a spare machine.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
case ${1:-} in
two-sales | shelf) request=$1 && shift ;;
*) echo "usage: $0 two-sales|shelf [flags of shop explore]" >&2 && exit 2 ;;
esac
packages="tryton-modules-sale tryton-proteus postgresql"
dpkg -s $packages >/dev/null 2>&1 || {
    apt-get update
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-upgrade --no-install-recommends $packages
} >&2
dir=${SHOP_DIR:-$(mktemp -d)}
[ -n "${SHOP_DIR:-}" ] || trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir"
cp "$here"/*.yaml "$here/migrate.sh" "$here/seed.py" "$here/trytond.conf" "$dir"
"${SHOP:-./shop}" explore --app "$dir/$request.yaml" "$@"
