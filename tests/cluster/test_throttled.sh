#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# A node's disk becomes twenty times slower than the node says, while jobs come: LEAST-DELAY learns
# from what they take there, stops sending them, and says which node it did not believe.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/cluster.sh
cluster_up --nodes 3 --disk 10,40,10 --mem 1000
MOST=8 # jobs until n2 must be noticed

for n in n1 n2 n3; do on $n "$WORK" make $DISK/data 32 & done
wait
tap_true "every node hears of every other" until_true 20 sees n1 3

# A job of n1's that reads 16 MB past the page cache; it prints where it ran.
read_job() { # NUMBER OPTION...
	local number=$1
	shift
	on n1 iocom run --class reader "$@" -- sh -c "hostname; exec $WORK io $DISK/data 250 64 $number" | head -n 1
}
quiet() {
	on n1 iocom nodes --json | jq -e '[.nodes[] | select(.alive)] |
		length == 3 and all(.jobs == 0 and .disk_utilisation < 0.05)' >/dev/null
}
for number in 1 2 3; do
	tap_is "learning: run $number at home" "$(read_job $number --policy nlb)" n1
done
for number in 1 2 3; do
	tap_true "all are quiet" until_true 30 quiet
	tap_is "the fast disk gets job $number" "$(read_job $number --policy least-delay)" n2
done

run_dir=$(on n2 sh -c 'echo $IOCOM_RUN_DIR')
echo 2 >"$(dirname "$run_dir")/disk/speed"
went=()
there() { printf '%s\n' "${went[@]}" | grep -cx n2; }
one() {
	tap_true "all are quiet" until_true 30 quiet
	went+=("$(read_job $((${#went[@]} + 1)) --policy least-delay)")
}
while [ "${#went[@]}" -lt "$MOST" ] && [ "$(there)" -eq "${#went[@]}" ]; do one; done
tap_calc "the slow node was noticed by jobs that it got, $(there) of at most $((MOST - 1))" "$(there) >= 1 && $(there) < $MOST"
tap_like "explain says what was corrected" "$(on n1 iocom explain last)" 'n2 is not believed: jobs there took |corrected'
for _ in 1 2; do one; done
echo "# | with n2's disk at 2 MB/s instead of 40 the jobs ran on: ${went[*]}"
tap_is "every job ran" "$(printf '%s\n' "${went[@]}" | grep -cx 'n[123]')" "${#went[@]}"
tap_is "none of the next went there" "$(printf '%s\n' "${went[@]: -3}" | grep -cx n2)" 0
tap_done
