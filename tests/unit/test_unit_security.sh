#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# The agent's systemd unit: what binds the agent alone is set, and nothing that jobs would
# inherit, as systemd itself judges. data/unit-security.json is its policy with the latter
# excepted, each with the reason.
set -uo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh disable=SC1091
. "$here/tests/lib/tap.sh"
policy=$here/tests/unit/data/unit-security.json
unset POSIXLY_CORRECT
export SYSTEMD_COLORS=0 SYSTEMD_PAGER='' SYSTEMD_EMOJI=0 LC_ALL=C.UTF-8

if ! command -v jq >/dev/null ||
	! systemd-analyze security --help 2>/dev/null | grep -q security-policy; then
	echo "1..0 # SKIP needs jq and systemd-analyze of systemd 250 or later"
	exit 0
fi
dir=$(mktemp -d /tmp/iocom-unit-XXXXXX)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
unit=$dir/iocomd.service
# verify asks whether the program and the manual page are there.
sed -e "s|@PREFIX@/sbin/iocomd|$(command -v true)|" -e /^Documentation=/d \
	"$here/agent/iocomd.service" >"$unit"
security() { systemd-analyze security --offline=yes "$@" "$unit"; }
score() { security "$@" 2>&1 | sed -n 's/.*Overall exposure level[^:]*: \([0-9.]*\).*/\1/p'; }

# Older and newer systemds may not know the same keys: that is a warning, as it is at the start.
said=$(systemd-analyze verify "$unit" 2>&1 | grep -F iocomd.service | grep -vE 'Unknown key|not known')
tap_is "systemd reads the unit" "$said" ""

echo "# | exposure: $(score), jobs excepted: $(score --security-policy="$policy")"
security --security-policy="$policy" --threshold=30 >"$dir/said" 2>&1
tap_is "what binds the agent alone is set: exposure 3.0 of 10 at most" "$?" 0
grep -v ^// "$dir/said" | grep '^✗' | sed 's/^/# /'

security --json=short >"$dir/all"
excepted=$(jq -r keys[] "$policy")
for field in $excepted; do
	jq -r --arg field "$field" '.[] | select(.json_field == $field and .set == true) | .name' "$dir/all"
done >"$dir/inherited"
tap_is "jobs inherit nothing" "$(cat "$dir/inherited")" ""
tap_is "the policy excepts what systemd knows" \
	"$(jq -r '.[].json_field' "$dir/all" | sort | comm -13 - <(sort <<<"$excepted") | head -n 3)" ""

# The policy can fail a unit.
sed -i '/^DevicePolicy/d; /^UMask/d' "$unit"
security --security-policy="$policy" --threshold=30 >/dev/null 2>&1
tap_isnt "a unit without them is found" "$?" 0
sed -i 's/^\[Install\]/NoNewPrivileges=yes\n[Install]/' "$unit"
tap_is "and one that binds jobs" \
	"$(security --json=short | jq -r '.[] | select(.json_field == "NoNewPrivileges") | .set')" true
tap_done
