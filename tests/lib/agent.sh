# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# The test's own agent for this machine, in a cgroup of its own. Source it after tap.sh; agent_up
# NAME sets dir, build, iocom, cgroup and root; everything is removed at the end.

build=${IOCOM_BUILD:-$PWD/build}
iocom=$build/iocom
agent=''

agent_groups() { find /sys/fs/cgroup -mindepth 1 -maxdepth 6 -depth -type d -path "*/$cgroup*" 2>/dev/null; }
agent_stop() {
	[ -z "$agent" ] || { kill "$agent" 2>/dev/null; wait "$agent" 2>/dev/null; }
	agent=''
}
agent_cleanup() {
	local c
	[ "$(type -t at_end)" != function ] || at_end
	agent_stop
	agent_groups | while read -r c; do
		[ ! -s "$c/cgroup.procs" ] || xargs -r kill -KILL <"$c/cgroup.procs" 2>/dev/null
		until_true 1 rmdir "$c"
	done
	rm -rf "$dir"
}
agent_start() {
	"$build/iocomd" --name p1 --run-dir "$dir/run" --state-dir "$dir/state" --scope "cgroup=$cgroup" \
		--port "$port" --munge-socket "$dir/none" --shim "$build/iocom-shim" \
		>>"$dir/log" 2>&1 &
	agent=$!
	until_true 20 test -S "$dir/run/iocom.sock"
}
agent_up() { # NAME, of directory and cgroup
	[ "$(id -u)" -eq 0 ] || tap_skip_all "needs root (eBPF)"
	[ -e /sys/kernel/btf/vmlinux ] || tap_skip_all "the kernel has no BTF"
	root=$(findmnt -n -t cgroup2 -o TARGET | head -n 1)
	[ -n "$root" ] || tap_skip_all "cgroup2 is not mounted"
	port=$(free_ports)
	dir=$(mktemp -d "/var/tmp/iocom-$1-XXXXXX")
	chmod 755 "$dir"
	cgroup=iocom-$1-$$
	trap agent_cleanup EXIT
	trap 'exit 130' INT TERM
	mkdir "$root/$cgroup"
	export IOCOM_RUN_DIR=$dir/run
	agent_start
	tap_true "an agent for this machine" until_true 10 "$iocom" run -- true
}
