#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# A cluster in which nobody hears all others: agents with synthetic loads, joined, killed, parted.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
[ "$(id -u)" -eq 0 ] || tap_skip_all "needs root (network namespaces)"
command -v munged >/dev/null || tap_skip_all "needs munged"
exec python3 -B tests/bench/live/check.py
