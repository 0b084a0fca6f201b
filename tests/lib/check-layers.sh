#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Checks the layers in what was really built:
#  1. librules.a and libgossip.a use only the outside functions on the allow-list
#     (no clock, socket, file, environment, output) and have no writable data;
#  2. each folder's objects were compiled only from headers of the layers below
#     (the compiler's own dependency files list what it read).
set -euo pipefail
build=${1:-build}
fail=0

# check_pure ARCHIVE: it uses the outside functions of librules.a's list only, and has no data that
# can be written.
check_pure() {
	local archive=$1 defined foreign writable
	defined=$(nm --defined-only "$build/$archive" | awk 'NF==3 {print $3}' | sort -u)
	foreign=$(nm -u "$build/$archive" | awk '$1=="U" {print $2}' | sort -u |
		comm -23 - <(echo "$defined") |
		comm -23 - <(grep -v '^#' balancer/rules/allowed-symbols.txt | sort -u))
	if [ -n "$foreign" ]; then
		echo "check-layers: $archive is not pure; it uses: $(echo $foreign)" >&2
		fail=1
	fi
	writable=$(nm --defined-only "$build/$archive" | awk '$2 ~ /^[bBdDcC]$/ {print $3}' |
		grep -v '\.local$' || true)
	[ -n "$writable" ] || return 0
	# Tables of pointers land in .data.rel.ro of position-independent objects: read-only at run time.
	writable=$(objdump -t "$build/$archive" |
		awk '$0 ~ / O / && ($4 == ".data" || $4 == ".bss" || $3 == "*COM*") {print $NF}')
	if [ -n "$writable" ]; then
		echo "check-layers: $archive has writable globals: $(echo $writable)" >&2
		fail=1
	fi
}
check_pure librules.a
check_pure libgossip.a

# check_room ROOM ALLOW: the headers of ROOM's objects may come only from ALLOW.
check_room() {
	local room=$1 allow=$2 bad
	[ -d "$build/obj/$room" ] || return 0
	bad=$(find "$build/obj/$room" -maxdepth 1 -name '*.d' | while read -r file; do
		source=${file#"$build/obj/"} # one of a source that is gone says nothing
		[ ! -e "${source%.d}.c" ] || cat "$file"
	done |
		tr ' \\' '\n\n' | sed 's|^\./||' | grep -E '^[a-z].*\.h:?$' | sed 's/:$//' | sort -u |
		grep -vE "^($allow)" || true)
	if [ -n "$bad" ]; then
		echo "check-layers: $room/ may not include: $(echo $bad)" >&2
		fail=1
	fi
}
skeleton="$build/bpf/"
check_room balancer/rules 'include/|balancer/rules/'
check_room balancer/gossip 'include/|balancer/gossip/'
check_room balancer/view 'include/|balancer/view/'
for room in user user/*/; do
	check_room "${room%/}" "include/|user/|bpf/|$skeleton"
done
for room in balancer balancer/{batch,doctor,profile,record,run,settings,settings/owner,top}; do
	check_room "$room" 'include/|user/|balancer/'
done
check_room agent/shim 'include/|user/|agent/shim/|agent/init/(hold|init).h'
check_room agent/shim/move 'include/|user/|agent/shim/(move/|beside.h)'
check_room agent/init 'include/|user/|agent/init/'
# The launchers of parallel jobs run as the job's user and share nothing with root's programs.
check_room agent/tasks 'include/|user/|agent/tasks/'
# The agent's inner walls: agent*.c alone know all parts.  home/ and guest/ are two parties that
# talk in messages (cluster/peer_message.h) and include nothing of each other.
below='include/|user/|balancer/(gossip|profile|settings|view)/'
check_room agent/base "$below|agent/base/"
check_room agent/jobs "$below|agent/(base|jobs)/"
check_room agent/measure "$below|agent/(base|jobs|measure)/"
# The network part includes nothing of root's parts but the gate between the two.
check_room agent/gate "$below|agent/(base|gate)/"
check_room agent/net "$below|agent/(base|gate|net)/"
check_room agent/cluster "$below|agent/(base|jobs|gate|cluster)/"
check_room agent/guest "$below|agent/(base|jobs|measure|gate|cluster|guest)/|agent/shim/(lease|order).h"
check_room agent/home "$below|agent/(base|jobs|measure|gate|cluster|home)/"
check_room agent/gang "$below|agent/(base|jobs|measure|gate|cluster|home|gang)/"
check_room agent/metrics "$below|agent/(base|jobs|measure|gate|cluster|metrics)/"
check_room agent/owner "$below|agent/(base|jobs|measure|gate|cluster|guest|owner)/"
check_room agent/feedback "$below|agent/(base|jobs|measure|gate|cluster|guest|feedback)/"
check_room agent/moves "$below|agent/(base|jobs|measure|gate|cluster|guest|moves)/"
check_room agent/front "$below|agent/(base|jobs|measure|gate|cluster|guest|home|gang|owner|feedback|moves|front)/"
check_room agent 'include/|user/|balancer/|agent/(agent|base|jobs|measure|gate|cluster|guest|home|gang|metrics|owner|feedback|moves|front)'
# The front room asks home and guest by their doors only.
for door in guest home; do
	inside=$(grep -nE "#include \"agent/$door/($door"'_own|place|launch|home_leases)\.h' agent/front/*.[ch] || true)
	if [ -n "$inside" ]; then
		echo "check-layers: front/ may not look behind the door of $door/: $inside" >&2
		fail=1
	fi
done
for room in sim sim/*/; do
	check_room "${room%/}" 'include/|balancer/(gossip|view)/|sim/'
done

[ "$fail" -eq 0 ] && echo "check-layers: librules.a and libgossip.a are pure; all folders include only downwards"
exit "$fail"
