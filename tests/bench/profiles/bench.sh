#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Brings up a node with a disk, and measures there how right learned needs are (profiles.py).
set -uo pipefail
here=$(cd "$(dirname "$0")/../../.." && pwd)
cd "$here" || exit 1
[ "$(id -u)" -eq 0 ] || {
	echo "bench-profiles: needs root (network namespaces, eBPF)" >&2
	exit 1
}
exec 9>"/run/lock/${IOCOM_TESTBED_MARK:-iocom-testbed}-user.lock"
flock -w 900 9 || {
	echo "bench-profiles: another test holds the testbed" >&2
	exit 1
}
tests/testbed/testbed down >/dev/null 2>&1
trap 'tests/testbed/testbed down >/dev/null 2>&1' EXIT
trap 'exit 130' INT TERM
tests/testbed/testbed up --nodes 1 --disk 80 --disk-size 1024 --cpu 1 --mem 1500 >/dev/null || exit 1
python3 -B tests/bench/profiles/profiles.py "$@"
