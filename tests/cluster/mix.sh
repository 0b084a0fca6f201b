#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Runs the same 42 real jobs under NLB, CPU-RE and IOCM-RE, and measures and prints the mean
# slowdown of each. That of IOCM-RE must be below both others. MIX_JOBS, MIX_SEED, MIX_SECONDS
# change the mix.
set -uo pipefail
cd "$(dirname "$0")/../.."
. tests/lib/tap.sh
. tests/lib/cluster.sh
cluster_up --nodes 4 --disk 20,20,10,5 --mem 1000
for n in n1 n2 n3 n4; do on $n "$WORK" make $DISK/data 128 & done
wait
until_true 10 sees n1 4
python3 tests/cluster/mix.py --testbed "$TESTBED" --work "$WORK" --jobs "${MIX_JOBS:-42}" \
	--seed "${MIX_SEED:-1}" --seconds "${MIX_SECONDS:-45}" --out "$SCRATCH/mix.json"
tap_is "every job of every policy ended well" "$(jq '[.policies[].failed] | add' "$SCRATCH/mix.json")" 0
mean() { jq ".policies[\"$1\"].mean" "$SCRATCH/mix.json"; }
tap_calc "mean slowdown: IOCM-RE $(mean iocm-re) below NLB $(mean nlb)" "$(mean iocm-re) < $(mean nlb)"
tap_calc "mean slowdown: IOCM-RE $(mean iocm-re) below CPU-RE $(mean cpu-re)" "$(mean iocm-re) < $(mean cpu-re)"
tap_done
