#!/bin/sh
# Installs Better Auth from npm in a folder of its own, and explores two requests with an API key for one:
#   examples/better-auth/run.sh 1.3
#   examples/better-auth/run.sh 1.7-mended --overlap
# SHOP is the tool (default ./shop). SHOP_DIR keeps the installation there; by default it is deleted.
set -eu
case ${1:-} in
1.3 | 1.3-mended | 1.7 | 1.7-mended) version=$1 && shift ;;
*) echo "usage: $0 1.3|1.3-mended|1.7|1.7-mended [flags of shop explore]" >&2 && exit 2 ;;
esac
. "$(dirname "$0")/../folder.sh"
# The packages of 1.7 ask for two versions of one peer; each gets the one that it asks for.
(cd "$dir" && npm install --legacy-peer-deps --no-audit --no-fund --no-package-lock --loglevel=error) >&2
"$shop" explore --app "$dir/$version.yaml" "$@"
