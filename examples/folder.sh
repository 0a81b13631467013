# The run.sh of each shop that people run includes this. It copies the shop's folder to a folder of its
# own, $dir, which is deleted at the end, also after Ctrl-C. SHOP_DIR names a folder that stays. $shop is
# the tool: SHOP, or ./shop.
shop=${SHOP:-./shop}
command -v "$shop" >/dev/null || {
    echo "$shop is not there: build it (go build -o shop ./cmd/shop), or name it with SHOP" >&2
    exit 2
}
dir=${SHOP_DIR:-$(mktemp -d)}
if [ -z "${SHOP_DIR:-}" ]; then
    trap 'rm -rf "$dir"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
fi
mkdir -p "$dir"
cp -R "$(dirname "$0")"/. "$dir"
