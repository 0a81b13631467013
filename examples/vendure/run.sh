#!/bin/sh
# Installs Vendure from npm in a folder of its own, seeds it, and explores its last unit:
#   examples/vendure/run.sh --budget 10m
# SHOP is the tool (default ./shop). SHOP_DIR keeps the installation there; by default it is deleted.
set -eu
. "$(dirname "$0")/../folder.sh"
(cd "$dir" && npm install --no-audit --no-fund --no-package-lock --loglevel=error) >&2
"$shop" explore --app "$dir/oversell.yaml" "$@"
