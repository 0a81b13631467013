#!/usr/bin/env bash
# Counts how often shop verify raises an alarm on this tree, in which nothing is wrong:
#
#   tools/false-alarms.sh QUICK LOCAL   # number of runs of verify --quick and of verify --engine local
#
# Half of the runs have the machine for themselves. The others run five at a time at the lowest
# priority. The script prints one line for each run, and then the counts by exit code: 1 means a
# contradicted promise or a harness error, 3 an inconclusive cell. It keeps the results of runs
# that did not exit with 0 in the folder that it names last.
set -uo pipefail
cd "$(dirname "$0")/.."
quicks=${1:?how many of verify --quick} locals=${2:?how many of verify --engine local}
results=$(mktemp -d)
go build -o "$results/shop" ./cmd/shop || exit 2
at_once=5

# run NAME HOW NUMBER ARGUMENTS...
run() {
	local name=$1 how=$2 number=$3 code=0 start=$SECONDS level=0
	shift 3
	[ "$how" = alone ] || level=19
	[ "$name" = quick ] || set -- "$@" --history "$results/history-$how-$number"
	nice -n "$level" "$results/shop" verify "$@" >"$results/$name-$how-$number.txt" 2>&1 || code=$?
	echo "$name $how $code $((SECONDS - start)) s: $(grep -h '^[0-9]* cells in' "$results/$name-$how-$number.txt")" | tee -a "$results/summary"
	((code)) || rm -rf "$results/$name-$how-$number.txt" "$results/history-$how-$number"
}

# runs NAME TIMES ARGUMENTS...
runs() {
	local name=$1 times=$2 n
	shift 2
	for ((n = 1; n <= (times + 1) / 2; n++)); do run "$name" alone "$n" "$@"; done
	for ((n = 1; n <= times / 2; n++)); do
		(($(jobs -rp | wc -l) < at_once)) || wait -n
		run "$name" held "$n" "$@" &
	done
	wait
}

runs quick "$quicks" --quick
runs local "$locals" --engine local
echo
cut -d' ' -f1-3 "$results/summary" | sort | uniq -c | while read -r times name how code; do
	echo "$times of $name, $how: exit $code"
done
echo "$results"
