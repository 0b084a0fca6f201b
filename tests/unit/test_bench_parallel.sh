#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# What bench-parallel computes (tests/bench/parallel/test_mix.py).
set -uo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
exec python3 -B "$here/tests/bench/parallel/test_mix.py"
