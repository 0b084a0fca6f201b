#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# A node's disk becomes twenty times slower than the node says, while jobs come: LEAST-DELAY learns
# from what they take there, stops sending them, and says which node it did not believe.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/cluster.sh
cluster_up --nodes 3 --disk 10,40,10 --mem 1000
JOBS=12

for n in n1 n2 n3; do on $n "$WORK" make $DISK/data 32 & done
wait
tap_true "every node hears of every other" until_true 20 sees n1 3

# A job of n1's that reads 4 MB past the page cache; it prints where it ran.
read_job() { # NUMBER OPTION...
	local number=$1
	shift
	on n1 iocom run --class reader "$@" -- sh -c "hostname; exec $WORK io $DISK/data 60 64 $number" | head -n 1
}
quiet() { for n in n1 n2 n3; do field_below n1 $n disk_utilisation 0.05 && field_below n1 $n jobs 1 || return 1; done; }
for number in 1 2 3; do
	tap_is "learning: run $number at home" "$(read_job $number --policy nlb)" n1
done
for number in 1 2 3; do
	until_true 20 quiet
	tap_is "the fast disk gets job $number" "$(read_job $number --policy least-delay)" n2
done

run_dir=$(on n2 sh -c 'echo $IOCOM_RUN_DIR')
echo 2 >"$(dirname "$run_dir")/disk/speed"
went=()
for ((number = 1; number <= JOBS; number++)); do
	until_true 20 quiet
	went+=("$(read_job $number --policy least-delay)")
done
echo "# | with n2's disk at 2 MB/s instead of 40, $JOBS jobs ran on: ${went[*]}"
there=$(printf '%s\n' "${went[@]}" | grep -cx n2)
tap_is "every job ran" "$(printf '%s\n' "${went[@]}" | grep -cx 'n[123]')" "$JOBS"
tap_calc "the slow node was noticed by jobs that it got ($there)" "$there >= 1"
tap_calc "and got less than half of them" "$there < $JOBS / 2"
tap_is "not one of the last three" "$(printf '%s\n' "${went[@]: -3}" | grep -cx n2)" 0
until_true 20 quiet
tap_calc "a decision shows the doubt as a factor" \
	"$(on n1 iocom place --policy least-delay --class reader --json -- true |
		jq '[.nodes[] | select(.name == "n2")][0].doubt // 1') > 2"
tap_like "explain says which node is not believed" "$(on n1 iocom explain last)" 'n2 is not believed: jobs there took '
tap_done
