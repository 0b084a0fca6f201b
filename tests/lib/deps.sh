#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Installs the Debian packages that building, testing and the demo need. If all are there it does
# nothing and needs neither network nor root. The argument `vm` adds what the virtual machines
# need, `peers` adds the programs that bench-remote compares with (the
# benchmark starts their daemons itself), and `effect` adds the applications of bench-effect.
set -eu

build="gcc libc6-dev make pkg-config clang llvm bpftool libbpf-dev libelf-dev zlib1g-dev libnng-dev
libmunge-dev libsodium-dev libmsgpack-dev libinih-dev libjansson-dev libsqlite3-dev
libncurses-dev libmicrohttpd-dev libseccomp-dev libpam0g-dev scdoc libgsl-dev libcsv-dev gnuplot-nox"
tests="libcmocka-dev libclang-rt-dev cppcheck clang-format git munge nbdkit nbdkit-plugin-dev libnbd-bin fuse3 iproute2 iputils-ping
 util-linux e2fsprogs procps kmod jq python3 tmux fio shellcheck rsync parallel pdsh
 libpam-modules libfaketime less vim-tiny apparmor
 openmpi-bin libopenmpi-dev mpich libmpich-dev libpmix-dev"
vm="qemu-system-x86 busybox-static dmsetup xz-utils"
peers="openssh-server openssh-client slurmctld slurmd slurm-client"
effect="openssl sqlite3 xz-utils zstd perl postgresql"
# Only for a comparison in bench-sim; packages that do not exist are left out.
optional="libsimgrid-dev g++"

case " $* " in
*" vm "*) tests="$tests $vm" ;;
esac
case " $* " in
*" peers "*) tests="$tests $peers" ;;
esac
lacking() { # PACKAGE...
	for package in "$@"; do
		state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
		[ "$state" = installed ] || printf ' %s' "$package"
	done
}
# shellcheck disable=SC2086
missing=$(lacking $build $tests)
# Without one of these the benchmark leaves out its job, and says so.
extra=""
case " $* " in
*" effect "*)
	# shellcheck disable=SC2086
	extra=$(lacking $effect)
	;;
esac
[ -n "$missing$extra" ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
	echo "deps: these packages are missing:$missing$extra" >&2
	echo "deps: install them as root: sudo make deps" >&2
	exit 1
fi
echo "deps: installing$missing$extra"
export DEBIAN_FRONTEND=noninteractive
# The munge package would start a daemon of its own; the tests start theirs.
case "$extra" in
*postgresql*)
	# Its package would make a database cluster and start a server; the jobs make their own.
	if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
		mkdir -p /etc/postgresql-common
		echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
	fi
	;;
esac
apt-get update -qq
# shellcheck disable=SC2086
[ -z "$missing" ] || apt-get install -y -qq --no-install-recommends $missing >/dev/null
for package in ${missing:+$optional} $extra; do
	apt-get install -y -qq --no-install-recommends "$package" >/dev/null 2>&1 ||
		echo "deps: going on without $package"
done
