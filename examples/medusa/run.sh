#!/bin/sh
# Installs Medusa from npm in a folder of its own, seeds it, and explores its last unit:
#   examples/medusa/run.sh --budget 10m
# SHOP is the tool (default ./shop). SHOP_DIR keeps the installation there; by default it is deleted.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=${SHOP_DIR:-$(mktemp -d)}
[ -n "${SHOP_DIR:-}" ] || trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir"
cp "$here"/*.js* "$here"/oversell.yaml "$dir"
(cd "$dir" && npm install --no-audit --no-fund --no-package-lock --loglevel=error)
"${SHOP:-./shop}" explore --app "$dir/oversell.yaml" "$@"
