# shellcheck shell=dash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Inside a test machine: what two agents on its loopback need to move jobs of the users anna and bert.
# Source it with $build, $criu, $dir (for files) and $groups (a cgroup) set.
# shellcheck disable=SC2154
soon() { # SECONDS COMMAND...: until it is true
	end=$(($(date +%s) + $1))
	shift
	until "$@"; do
		[ "$(date +%s)" -lt $end ] || return 1
		sleep 0.2
	done
}
mkdir -p $dir/munge /var/tmp/anna /etc/munge
chmod 755 $dir /var/tmp
echo "anna:x:1000:1000::/:/bin/sh" >>/etc/passwd
echo "bert:x:1001:1001::/:/bin/sh" >>/etc/passwd
printf 'anna:x:1000:\nbert:x:1001:\nproject:x:1002:anna\n' >>/etc/group
chown 1000:1000 /var/tmp/anna
cd / || exit 1

(umask 077 && head -c 128 /dev/urandom >$dir/key)
munged --force --key-file=$dir/key --socket=$dir/munge/socket --pid-file=$dir/munge/pid \
	--log-file=$dir/munge/log --seed-file=$dir/munge/seed >$dir/munged 2>&1 ||
	sed 's/^/# munged: /' $dir/munged
pids=
agent() { # NODE PORT PEER'S-PORT
	mkdir -p $dir/"$1" "$groups/$1"
	"$build/iocomd" --name "$1" --listen 127.0.0.1 --port "$2" --peers "127.0.0.1:$3" \
		--run-dir $dir/"$1"/run --state-dir $dir/"$1"/state --munge-socket $dir/munge/socket \
		--scope "cgroup=migrate/$1" --period 0.5 --criu $criu \
		--shim "$build/iocom-shim" --net-program "$build/iocom-net" >$dir/"$1"/log 2>&1 &
	pids="$pids $!"
}
on() { # NODE USER IOCOM-ARGUMENTS...
	run_dir=$dir/$1/run as=$2
	shift 2
	IOCOM_RUN_DIR=$run_dir timeout "${limit:-100}" setpriv --reuid "$as" --regid "$as" --init-groups \
		"$build/iocom" "$@"
}
knows() { [ "$(on "$1" root nodes --json | grep -o '"alive": *true' | wc -l)" -eq 2 ]; }
both_know() { knows n1 && knows n2; }
