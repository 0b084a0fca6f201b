#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# 42 real jobs, the same under NLB, CPU-RE and IOCM-RE: each ends well, and IOCM-RE leaves less to
# do to the busiest disk than both, by where it sends the jobs.  That makes them faster on a quiet
# machine: the mean slowdowns are printed, and compared with MIX_QUIET=yes (make bench-mix).
# MIX_JOBS, MIX_SEED, MIX_SECONDS change the mix.
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
of() { jq ".policies[\"$1\"] | $2" "$SCRATCH/mix.json"; }
tap_is "NLB sends none away" "$(of nlb .moved)" 0
busiest() { of "$1" '[.disk_s[]] | max * 10 | round / 10'; }
tap_calc "the busiest disk: IOCM-RE $(busiest iocm-re) s below NLB $(busiest nlb) s" "$(busiest iocm-re) < $(busiest nlb)"
tap_calc "the busiest disk: IOCM-RE $(busiest iocm-re) s below CPU-RE $(busiest cpu-re) s" "$(busiest iocm-re) < $(busiest cpu-re)"
mean() { of "$1" .mean; }
[ -n "${MIX_QUIET-}" ] || { tap_done; exit; }
tap_calc "mean slowdown: IOCM-RE $(mean iocm-re) below NLB $(mean nlb)" "$(mean iocm-re) < $(mean nlb)"
tap_calc "mean slowdown: IOCM-RE $(mean iocm-re) below CPU-RE $(mean cpu-re)" "$(mean iocm-re) < $(mean cpu-re)"
tap_done
