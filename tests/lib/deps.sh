#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Installs the Debian packages that building, testing and the demo need. If all are there it does
# nothing and needs neither network nor root. The argument `vm` adds what the virtual machines
# need, `mpi` adds Open MPI, and `peers` adds the programs that bench-remote compares with (the
# benchmark starts their daemons itself).
set -eu

build="gcc libc6-dev make pkg-config clang llvm bpftool libbpf-dev libelf-dev zlib1g-dev libnng-dev
libmunge-dev libmbedtls-dev libmsgpack-dev libinih-dev libjansson-dev libsqlite3-dev
libncurses-dev libmicrohttpd-dev libpam0g-dev scdoc libgsl-dev libcsv-dev gnuplot-nox"
tests="libcmocka-dev libclang-rt-dev cppcheck clang-format git munge nbdkit nbdkit-plugin-dev libnbd-bin fuse3 iproute2 iputils-ping
 util-linux e2fsprogs procps kmod jq python3 tmux fio shellcheck rsync parallel pdsh
 libpam-modules libfaketime openssl less vim-tiny"
vm="qemu-system-x86 busybox-static dmsetup xz-utils"
mpi="openmpi-bin libopenmpi-dev"
peers="openssh-server openssh-client slurmctld slurmd slurm-client"
# Only for a comparison in bench-sim; packages that do not exist are left out.
optional="libsimgrid-dev g++"

case " $* " in
*" vm "*) tests="$tests $vm" ;;
esac
case " $* " in
*" mpi "*) tests="$tests $mpi" ;;
esac
case " $* " in
*" peers "*) tests="$tests $peers" ;;
esac
missing=""
for package in $build $tests; do
	state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
	[ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
	echo "deps: these packages are missing:$missing" >&2
	echo "deps: install them as root: sudo make deps" >&2
	exit 1
fi
echo "deps: installing$missing"
export DEBIAN_FRONTEND=noninteractive
# The munge package would start a daemon of its own; the tests start theirs.
apt-get update -qq
# shellcheck disable=SC2086
apt-get install -y -qq --no-install-recommends $missing >/dev/null
for package in $optional; do
	apt-get install -y -qq --no-install-recommends "$package" >/dev/null 2>&1 ||
		echo "deps: going on without $package"
done
