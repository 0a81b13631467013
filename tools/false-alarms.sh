#!/usr/bin/env bash
# Counts how often shop verify and shop ci raise an alarm on this tree, in which nothing is wrong:
#
#   tools/false-alarms.sh QUICK LOCAL [CI]   # number of runs of verify --quick, verify --engine local, and ci
#
# Half of the runs of verify have the machine for themselves. The others run five at a time at the lowest
# priority. The runs of ci take turns among the fixed examples in Node, Python and Go. Three of ten have a
# quarter of one core: a cgroup if this user may create one, otherwise the lowest priority against busy
# loops. The script prints one line for each run, and then the counts by exit code: 1 means a contradicted
# promise, a break or a harness error, 3 an inconclusive result. It keeps the results of runs that did
# not exit with 0 in the folder that it names last.
set -uo pipefail
cd "$(dirname "$0")/.."
quicks=${1:?how many of verify --quick} locals=${2:?how many of verify --engine local} cis=${3:-0}
results=$(mktemp -d)
go build -o "$results/shop" ./cmd/shop || exit 2
at_once=5

# record NAME HOW NUMBER CODE SECONDS
record() {
	local text=$results/$1-$2-$3.txt
	echo "$1 $2 $4 $5 s: $(grep -hE '^[0-9]* cells in|schedules|inconclusive|broken' "$text" | head -n 1)" | tee -a "$results/summary"
	(($4)) || rm -rf "$text" "$results/history-$2-$3" "$results/out-$2-$3"
}

# run NAME HOW NUMBER ARGUMENTS...
run() {
	local name=$1 how=$2 number=$3 code=0 start=$SECONDS level=0
	shift 3
	[ "$how" = alone ] || level=19
	[ "$name" = quick ] || set -- "$@" --history "$results/history-$how-$number"
	nice -n "$level" "$results/shop" verify "$@" >"$results/$name-$how-$number.txt" 2>&1 || code=$?
	record "$name" "$how" "$number" "$code" "$((SECONDS - start))"
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

# throttle COMMAND... runs a command with a quarter of one core. Its processes inherit the group.
throttle() {
	local v1=/sys/fs/cgroup/cpu/oversell-$$ v2=/sys/fs/cgroup/oversell-$$ group='' code=0 loops=() n
	if mkdir "$v1" 2>/dev/null; then
		group=$v1
		echo 100000 >"$group/cpu.cfs_period_us" && echo 25000 >"$group/cpu.cfs_quota_us" || exit 2
	elif [ -e /sys/fs/cgroup/cgroup.controllers ] && mkdir "$v2" 2>/dev/null && echo "25000 100000" 2>/dev/null >"$v2/cpu.max"; then
		group=$v2
	fi
	if [ -n "$group" ]; then
		(echo "$BASHPID" >"$group/cgroup.procs" && exec "$@") || code=$?
		for ((n = 0; n < 50; n++)); do # its last processes may still end
			rmdir "$group" 2>/dev/null && break
			sleep 0.1
		done
	else
		for ((n = 0; n < 3 * $(nproc); n++)); do
			while :; do :; done &
			loops+=($!)
		done
		nice -n 19 "$@" || code=$?
		kill "${loops[@]}"
	fi
	return "$code"
}

# runs_ci TIMES
runs_ci() {
	local n code start how language languages=(node python go)
	(($1)) || return 0
	(cd examples/node && npm ci --silent) && go build -C examples/go -o shop . || exit 2
	for ((n = 0; n < $1; n++)); do
		language=${languages[n % 3]} how=whole code=0 start=$SECONDS
		((n % 10 < 7)) || how=quarter
		set -- "$1" "$results/shop" ci --app "examples/$language/for-update.yaml" --out "$results/out-$how-$n"
		[ "$how" = whole ] || set -- "$1" throttle "${@:2}"
		PATH=/usr/bin:$PATH "${@:2}" >"$results/ci-$language-$how-$n.txt" 2>&1 || code=$?
		record "ci-$language" "$how" "$n" "$code" "$((SECONDS - start))"
	done
}

runs quick "$quicks" --quick
runs local "$locals" --engine local
runs_ci "$cis"
echo
cut -d' ' -f1-3 "$results/summary" | sort | uniq -c | while read -r times name how code; do
	echo "$times of $name, $how: exit $code"
done
echo "$results"
