# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# testbed exec: becomes the command (by exec at every step), so that signals, streams and the exit
# status are the command's own.

exec_main() {
	local node=${1-} user="" home dir
	local -a as=()
	[ $# -gt 0 ] || usage_error "exec: a node is missing"
	shift
	while [ $# -gt 0 ]; do
		case $1 in
		--user)
			[ $# -ge 2 ] || usage_error "exec: --user needs a name"
			user=$2
			shift 2
			;;
		--user=*) user=${1#*=} && shift ;;
		--) shift && break ;;
		*) usage_error "exec: '--' is missing before the command" ;;
		esac
	done
	[ $# -gt 0 ] || usage_error "exec: a command is missing"
	need_root exec
	[ -n "$(shape nodes)" ] || die "no testbed is up: testbed up --nodes N"
	dir=$STATE/$node
	if [[ ! $node =~ ^n[0-9]+$ ]] || [ ! -d "$dir/ns" ]; then
		die "no node '$node': there are n1 to n$(shape nodes)"
	fi
	if [ -n "$user" ]; then
		home=$(getent passwd "$user" | cut -d: -f6)
		[ -n "$home" ] || die "no user '$user' on this machine"
		as=(setpriv "--reuid=$user" "--regid=$(id -g "$user")" --init-groups)
		export USER=$user LOGNAME=$user HOME=$home
	fi
	cgroup_find
	cgroup_enter "$MARK/$node/exec" || die "cannot enter the control groups of $node: the testbed is damaged, $SELF down removes it"
	export IOCOM_TESTBED_DISK=$DISK_DIR IOCOM_RUN_DIR=$dir/run IOCOM_MUNGE_SOCKET=$dir/munge/socket
	# Not $BUILD itself: ordinary users may not be allowed into a directory above it.
	export PATH=$STATE/programs:$PATH
	[ -s "$dir/disk/loop" ] || unset IOCOM_TESTBED_DISK
	# shellcheck disable=SC2016
	exec nsenter "--net=$dir/ns/net" "--mount=$dir/ns/mnt" "--uts=$dir/ns/uts" \
		sh -c 'cd -- "$1" && shift && exec "$@"' testbed "$PWD" ${as[@]+"${as[@]}"} "$@"
}
