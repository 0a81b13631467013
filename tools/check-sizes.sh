#!/bin/sh
# Fails, and names them, when files above 1 MB are tracked by git: a binary that
# was built by hand is the usual one, and stays in every clone for good.
set -eu
cd "$(git rev-parse --show-toplevel)"
large=$(git ls-files -z | xargs -0 sh -c 'for file; do [ ! -f "$file" ] || [ -L "$file" ] || find "$file" -prune -size +2048 -print; done' sh)
[ -z "$large" ] && exit 0
echo "tracked files above 1 MB; git rm --cached them, and add them to .gitignore:" >&2
echo "$large" >&2
exit 1
