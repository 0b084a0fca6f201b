# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# testbed status: prints what is up, for people and as JSON.

# Prints the K-th entry of a comma-separated list.
nth() { # K LIST
	local -a list
	IFS=, read -ra list <<<"$2"
	printf '%s' "${list[$1 - 1]}"
}

number() { awk -v x="$1" 'BEGIN { printf "%.6g", x }'; }

alive() { # PIDFILE
	if running "$1"; then echo running; else echo dead; fi
}

# Prints "NODE ADDRESS DISK MB/S CORES MB AGENT MUNGED PID" of every node.
status_rows() {
	local k dir disk agent loop
	for k in $(seq "$(shape nodes)"); do
		dir=$STATE/n$k loop=$(slurp "$STATE/n$k/disk/loop") agent=none disk=none
		if [ -n "$loop" ]; then
			disk=dead
			! running "$dir/disk/nbdkit.pid" || ! running "$dir/disk/nbdfuse.pid" || disk=$loop
		fi
		[ "$(shape agents)" = no ] || agent=$(alive "$dir/agent.pid")
		echo "n$k $(node_address "n$k") $disk $(number "$(nth "$k" "$(shape disk)")")" \
			"$(number "$(nth "$k" "$(shape cpu)")") $(nth "$k" "$(shape mem)") $agent" \
			"$(alive "$dir/munge/pid") $(slurp "$dir/agent.pid")"
	done
}

status_json() {
	local node address disk speed cores memory agent munged pid comma=""
	printf '{"version":1,"up":true,"state_dir":"%s","net":"%s","disk_size_mb":%d,"disk_dir":"%s","port":%d,"nodes":[' \
		"$STATE" "$(shape net)" "$(shape disk-size)" "$DISK_DIR" "$PORT"
	while read -r node address disk speed cores memory agent munged pid; do
		printf '%s{"name":"%s","address":"%s","disk":%s,"disk_mb_per_s":%s,"cpu_cores":%s,"memory_mb":%d,' \
			"$comma" "$node" "$address" "$([ "$disk" = none ] && echo null || echo "\"$disk\"")" \
			"$speed" "$cores" "$memory"
		printf '"agent":"%s","agent_pid":%s,"munged":"%s","run_dir":"%s","munge_socket":"%s","cgroup":"%s"}' \
			"$agent" "${pid:-null}" "$munged" "$STATE/$node/run" "$STATE/$node/munge/socket" "$MARK/$node"
		comma=,
	done < <(status_rows)
	echo ']}'
}

status_main() {
	local json=no
	case ${1-} in
	"") ;;
	--json) json=yes ;;
	*) usage_error "status: unknown argument '$1'" ;;
	esac
	[ $# -le 1 ] || usage_error "status: too many arguments"
	cgroup_find
	if [ -n "$(shape nodes)" ]; then
		if [ "$json" = yes ]; then
			status_json
			return
		fi
		{
			echo "NODE ADDRESS DISK MB/S CORES MB AGENT MUNGED"
			status_rows | cut -d' ' -f1-8
		} | awk '{ printf "%-5s %-12s %-8s %6s %6s %7s  %-8s %s\n", $1, $2, $3, $4, $5, $6, $7, $8 }'
		echo "links $(shape net), disks of $(shape disk-size) MB at $DISK_DIR, state in $STATE"
		return
	fi
	[ "$json" = no ] || echo '{"version":1,"up":false,"nodes":[]}'
	[ -z "$(down_elsewhere)" ] || die "a testbed with another state directory is up: IOCOM_TESTBED_DIR=$(down_elsewhere)"
	[ -z "$(down_remains)" ] || die "remains of an interrupted testbed: $SELF down removes them"
	[ "$json" = yes ] || echo "no testbed is up"
}
