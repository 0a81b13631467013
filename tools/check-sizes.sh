#!/bin/sh
# Fails if git tracks files above 1 MB, and names them. The usual one is a binary that was built
# by hand: it would stay in every clone for good.
set -eu
cd "$(git rev-parse --show-toplevel)"
large=$(git ls-files -z | xargs -0 sh -c 'for file; do [ ! -f "$file" ] || [ -L "$file" ] || find "$file" -prune -size +2048 -print; done' sh)
[ -z "$large" ] && exit 0
echo "tracked files above 1 MB; git rm --cached them, and add them to .gitignore:" >&2
echo "$large" >&2
exit 1
