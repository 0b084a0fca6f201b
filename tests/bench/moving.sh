#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# IOCM-PM against IOCM-RE on long jobs, on six emulated nodes, by a real criu (moving.py).
# PASSES=5 (each is three minutes); a pass is one list of jobs under both policies.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
export IOCOM_TESTBED_MARK=${IOCOM_TESTBED_MARK:-iocom-moving}
. tests/lib/cluster.sh
CRIU=${IOCOM_CRIU:-$(bash tests/lib/criu.sh)} || exit 1
AGENT_OPTIONS="--criu $CRIU --moves-a-minute 60 --moves-pause-s 10" cluster_up --nodes 6 --disk 20 --mem 1000
for n in 1 2 3 4 5 6; do on "n$n" "$WORK" make "$DISK/data" 128 & done
wait
until_true 20 sees n1 6 || exit 1
python3 -B tests/bench/moving.py --build "$IOCOM_BUILD" --passes "${PASSES:-5}"
