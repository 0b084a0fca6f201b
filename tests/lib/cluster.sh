# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# An emulated cluster for shell tests: cluster_up starts it and takes it down at the end, also
# when the test fails. Source tap.sh first.

IOCOM_BUILD=${IOCOM_BUILD:-$PWD/build}
TESTBED=$PWD/tests/testbed/testbed
WORK=$IOCOM_BUILD/tests/tools/work
DISK=/mnt/${IOCOM_TESTBED_MARK:-iocom-disk}
[ "$DISK" != /mnt/iocom-testbed ] || DISK=/mnt/iocom-disk # the default name, said
SCRATCH=$(mktemp -d)
chmod 755 "$SCRATCH"

cluster_down() {
	umount "$SCRATCH/full" 2>/dev/null
	: >"$SCRATCH/stop"
	"$TESTBED" down >/dev/null 2>&1
	rm -rf "$SCRATCH"
}

cluster_up() { # testbed up's options
	[ "$(id -u)" -eq 0 ] || tap_skip_all "needs root (network namespaces, eBPF)"
	[ -e /sys/kernel/btf/vmlinux ] || tap_skip_all "the kernel has no BTF"
	[ -c /dev/fuse ] || tap_skip_all "no /dev/fuse for the emulated disks"
	# A machine has one testbed of each name, so two tests take turns.
	exec 9>"/run/lock/${IOCOM_TESTBED_MARK:-iocom-testbed}-user.lock"
	flock -w 900 9 || tap_skip_all "another test holds the testbed"
	"$TESTBED" down >/dev/null 2>&1
	trap cluster_down EXIT
	trap 'exit 130' INT TERM
	if ! "$TESTBED" up "$@" >"$SCRATCH/up.log" 2>&1; then
		tap_fail "testbed up $*" "$(tail -n 20 "$SCRATCH/up.log")"
		tap_done
		exit 1
	fi
}

# Keeps the agents' logs beside the log FILE, when a test of three nodes has failed.
cluster_keep_logs() { # FILE
	local n
	for n in n1 n2 n3; do
		cp "${IOCOM_TESTBED_DIR:-/run/$IOCOM_TESTBED_MARK}/$n/agent.log" "$1.$n" 2>/dev/null
	done
	echo "# the log is $1, the agents' are $1.n1 to n3"
}

on() { # NODE COMMAND...
	local node=$1
	shift
	"$TESTBED" exec "$node" -- "$@"
}

# Each background load has a new stop file; `load_stop` ends them all and waits.
LOADS=()
load() { # NODE COMMAND...: runs until load_stop
	WORK_STOP=$SCRATCH/stop on "$@" >"$SCRATCH/load.${#LOADS[@]}.log" 2>&1 &
	LOADS+=($!)
}
load_stop() {
	: >"$SCRATCH/stop"
	[ ${#LOADS[@]} -eq 0 ] || wait "${LOADS[@]}" 2>/dev/null
	LOADS=()
	rm -f "$SCRATCH/stop"
}

# field NODE ABOUT FIELD: what NODE's matrix says about node ABOUT.
field() {
	on "$1" iocom nodes --json | jq -r --arg n "$2" --arg f "$3" '.nodes[] | select(.name==$n) | .[$f]'
}
sees() { # NODE COUNT: how many live nodes its matrix has
	[ "$(on "$1" iocom nodes --json | jq '.nodes | length')" -eq "$2" ]
}
field_above() { # NODE ABOUT FIELD VALUE
	awk -v v="$(field "$1" "$2" "$3")" -v w="$4" 'BEGIN { exit !(v > w) }'
}
field_below() { awk -v v="$(field "$1" "$2" "$3")" -v w="$4" 'BEGIN { exit !(v < w) }'; }
