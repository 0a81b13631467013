#!/bin/sh
# Installs Tryton from Debian's packages, seeds it in a folder of its own, and explores its last unit:
#   examples/tryton/run.sh two-sales --budget 10m
#   examples/tryton/run.sh shelf --budget 3m
# SHOP is the tool (default ./shop). SHOP_DIR keeps the folder; by default it is deleted.
# Debian's packages also start services of their own, so use a container or a spare machine.
set -eu
case ${1:-} in
two-sales | shelf) request=$1 && shift ;;
*) echo "usage: $0 two-sales|shelf [flags of shop explore]" >&2 && exit 2 ;;
esac
. "$(dirname "$0")/../folder.sh"
packages="tryton-modules-sale tryton-proteus postgresql"
dpkg -s $packages >/dev/null 2>&1 || {
    apt-get update
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-upgrade --no-install-recommends $packages
} >&2
"$shop" explore --app "$dir/$request.yaml" "$@"
