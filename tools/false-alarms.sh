#!/usr/bin/env bash
# How often a run of this very tree raises an alarm, where nothing is wrong:
#
#   tools/false-alarms.sh QUICK LOCAL   # so many of verify --quick, and of verify --engine local
#
# Each second run has the lowest priority, and two busy loops a core beside it: about a
# fifth of the machine is left for it. A line a run, then how many ended how. A verdict that
# contradicts its promise, or an error of the harness, is exit code 1; a cell that has shown
# nothing is 3. The results of runs that did not end with 0 stay in the folder named last.
set -uo pipefail
cd "$(dirname "$0")/.."
quicks=${1:?how many of verify --quick} locals=${2:?how many of verify --engine local}
results=$(mktemp -d)
go build -o "$results/shop" ./cmd/shop || exit 2

loops=()
stop() { kill "${loops[@]}" 2>/dev/null; wait 2>/dev/null; loops=(); }
trap stop EXIT

# run NAME NUMBER ARGUMENTS...
run() {
	local name=$1 number=$2 code=0 start=$SECONDS held=free nice=()
	shift 2
	if ((number % 2 == 0)); then
		held=held nice=(nice -n 19)
		for ((i = 0; i < 2 * $(nproc); i++)); do
			while :; do :; done &
			loops+=($!)
		done
	fi
	"${nice[@]}" "$results/shop" verify "$@" >"$results/$name-$number.txt" 2>&1 || code=$?
	stop
	echo "$name $held $code $((SECONDS - start)) s: $(grep -h '^[0-9]* cells in' "$results/$name-$number.txt")" | tee -a "$results/summary"
	((code)) || rm "$results/$name-$number.txt"
}

for ((n = 1; n <= quicks; n++)); do run quick "$n" --quick; done
for ((n = 1; n <= locals; n++)); do run local "$n" --engine local --history "$results/history"; rm -rf "$results/history"; done
echo
cut -d' ' -f1-3 "$results/summary" | sort | uniq -c | while read -r times name held code; do
	echo "$times of $name, $held: exit $code"
done
echo "$results"
