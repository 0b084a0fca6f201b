#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Fetches Debian's cloud kernels for the virtual machines: `fetch.sh [DIR]` puts each suite's
# newest into DIR/SUITE (vmlinuz, modules, version), and an emulator into DIR/emulator if this
# machine's is too old. It uses the mirror and keys of this machine's own package sources; lists
# and packages stay in DIR (DIR/tools: mdadm, DIR/nfs: nfs-kernel-server), and nothing is installed. Existing files are not
# fetched again: use `make clean` for newer ones. Exits with 1 if one cannot be fetched. Needs no
# root.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
dir=${1:-build/vm}
mkdir -p "$dir" && dir=$(realpath "$dir") || exit 1
# shellcheck source=tests/vm/suites.sh
. tests/vm/suites.sh
# shellcheck source=tests/lib/suite.sh
. tests/lib/suite.sh

# Prints the packages that hold the kernel: the named one, then those of its kind that it depends
# on (image alone, or image -> binary + modules).
kernel_packages() { # SUITE PACKAGE
	local next
	for next in $(apt_in "$1" apt-cache show --no-all-versions "$2" 2>/dev/null |
		sed -n 's/^Depends: //p' | tr ',' '\n' |
		sed -nE 's/^ *(linux-(image|binary|modules)-[^ ]+).*/\1/p'); do
		echo "$next"
		kernel_packages "$1" "$next"
	done
}

fetch_kernel() { # SUITE
	local suite=$1 root=$dir/apt/$1/root
	local packages tree version
	open_suite "$suite" || return 1
	packages=$(kernel_packages "$suite" "linux-image-cloud-$(dpkg --print-architecture)")
	[ -n "$packages" ] || { echo "suite $suite has no cloud kernel"; return 1; }
	rm -rf "$dir/$suite.new"
	# shellcheck disable=SC2086
	unpack "$suite" $packages || return 1
	# /boot/vmlinuz-VERSION; in newer suites /usr/lib/modules/VERSION/vmlinuz.
	tree=$(find "$root" -type d -regex '.*/lib/modules/[^/]*/kernel' -printf '%h\n')
	version=${tree##*/}
	mkdir -p "$dir/$suite.new/modules/lib/modules"
	cp "$(find "$root" -type f -name 'vmlinuz*')" "$dir/$suite.new/vmlinuz" || return 1
	mv "$tree" "$dir/$suite.new/modules/lib/modules/" || return 1
	depmod -b "$dir/$suite.new/modules" "$version" || return 1
	echo "$version" >"$dir/$suite.new/version"
	rm -rf "$dir/apt/$suite" "${dir:?}/$suite"
	mv "$dir/$suite.new" "$dir/$suite"
}

# Before version 8 the emulator's cmpxchg16b leaves wrong flags, which kills one boot in eight.
# Then the backports' emulator is unpacked; the installed one provides the libraries.
fetch_emulator() {
	local major suite root
	major=$(qemu-system-x86_64 --version | sed -nE 's/.*version ([0-9]+)\..*/\1/p')
	[ -n "$major" ] || { echo "there is no qemu-system-x86_64 here"; return 1; }
	[ "$major" -lt 8 ] || return 0
	suite=$(. /etc/os-release && echo "$VERSION_CODENAME")-backports
	root=$dir/apt/$suite/root
	open_suite "$suite" || return 1
	unpack "$suite" qemu-system-x86 qemu-system-common qemu-system-data seabios || return 1
	"$root/usr/bin/qemu-system-x86_64" --version || return 1
	mv "$root" "$dir/emulator"
	rm -rf "$dir/apt/$suite"
}

# These tools are unpacked because installing them would start a service or change how this
# machine boots.
fetch_tools() {
	local suite
	suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
	open_suite "$suite" && unpack "$suite" mdadm || return 1
	mv "$dir/apt/$suite/root" "$dir/tools"
	rm -rf "$dir/apt/$suite"
}

# What the NFS server's machine runs: not installed, because that would start services here.
fetch_nfs() {
	local suite
	suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
	open_suite "$suite" && unpack "$suite" nfs-kernel-server nfs-common libtirpc3 libtirpc-common \
		libevent-core-2.1-7 libnfsidmap1 libwrap0 netbase || return 1
	mv "$dir/apt/$suite/root" "$dir/nfs"
	rm -rf "$dir/apt/$suite"
}

missing=0
if [ ! -e "$dir/nfs" ] && ! fetch_nfs >"$dir/nfs.log" 2>&1; then
	tail -n 20 "$dir/nfs.log"
	echo "fetch: nfs-kernel-server cannot be had"
	missing=1
fi
if [ ! -e "$dir/tools" ] && ! fetch_tools >"$dir/tools.log" 2>&1; then
	tail -n 20 "$dir/tools.log"
	echo "fetch: mdadm cannot be had"
	missing=1
fi
if [ ! -e "$dir/emulator" ] && ! fetch_emulator >"$dir/emulator.log" 2>&1; then
	tail -n 20 "$dir/emulator.log"
	echo "fetch: an emulator cannot be had"
	missing=1
fi
for suite in "${suites[@]}"; do
	if [ ! -e "$dir/$suite/version" ] && ! fetch_kernel "$suite" >"$dir/$suite.log" 2>&1; then
		tail -n 20 "$dir/$suite.log"
		echo "fetch: the kernel of suite $suite cannot be had"
		missing=1
		continue
	fi
	echo "$suite: $(cat "$dir/$suite/version")"
done
exit $missing
