#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Makes the initramfs of one kernel: `initramfs.sh BUILD KERNEL-DIR OUT [nfs]`. It holds busybox, the
# tools and modules that the tests use, the programs of BUILD/tests/bpf and BUILD/tests/shim, and
# init; with `nfs` instead of these what a node of a cluster with an NFS server needs. Needs no root.
set -euo pipefail
build=$(realpath "$1") kernel=$(realpath "$2") out=$(realpath -m "$3") kind=${4:-}
cd "$(dirname "$0")/../.."
PATH=$PATH:/usr/sbin:/sbin:$PWD/build/vm/tools/sbin
version=$(cat "$kernel/version")
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

# Tools that the tests call by name and that busybox lacks or implements differently.
tools="dash ip tc ss mount umount losetup mkswap swapon swapoff fallocate blockdev blkdiscard
mkfs.ext4 modprobe dmsetup mdadm nsenter unshare prlimit timeout stat fio setpriv munged"
# Folders of modules (the ciphers for dm-crypt), and single modules, with those they depend on.
# Not every kernel has each as a module.
folders="crypto arch/x86/crypto drivers/md drivers/block"
modules="virtio_pci virtio_blk virtio_net ext4 xfs loop veth bridge dummy scsi_debug sd_mod
overlay tls mptcp_diag sch_tbf sch_netem unix_diag tcp_diag udp_diag raw_diag af_packet_diag
netlink_diag nf_tables tun"

if [ "$kind" = nfs ]; then
	tools="dash ip mount umount mkfs.ext4 modprobe nsenter timeout stat tc munged munge"
	folders=
	modules="virtio_pci virtio_blk virtio_net ext4 bridge nfsd nfs nfsv4 sch_netem"
fi

nfs=$PWD/build/vm/nfs # Debian's nfs-kernel-server, unpacked
chmod 755 "$root" # jobs of ordinary users must get through
mkdir -p "$root"/{dev,proc,sys,run,tmp,var/tmp,root,bb,etc,tests} \
	"$root"/usr/{bin,sbin,lib,lib64,libexec} "$root/usr/lib/modules"
for folder in bin sbin lib lib64; do
	ln -s "usr/$folder" "$root/$folder"
done

add() { # FILE [TARGET]: a program and the libraries it is linked with
	local library
	install -D "$1" "$root/${2:-usr/bin/$(basename "$1")}"
	for library in $(LD_LIBRARY_PATH=$nfs/usr/lib/x86_64-linux-gnu ldd "$1" 2>/dev/null | grep -oE '/[^ ]+' || true); do
		[ -e "$root/${library#"$nfs"}" ] || install -D "$library" "$root/${library#"$nfs"}"
	done
}

add "$(command -v busybox)"
for applet in $(busybox --list); do
	ln -s /usr/bin/busybox "$root/bb/$applet"
done
for tool in $tools; do
	path=$(command -v "$tool") || { echo "initramfs: there is no $tool here" >&2; exit 1; }
	add "$path"
done
ln -s dash "$root/usr/bin/sh"
for applet in $(busybox --list); do # jobs search only the usual directories
	[ -e "$root/usr/bin/$applet" ] || ln -s busybox "$root/usr/bin/$applet"
done
grep -E '^(root|daemon|nobody):' /etc/passwd >"$root/etc/passwd"
grep -E '^(root|daemon|nogroup):' /etc/group >"$root/etc/group"
echo 'iocom-net:x:900:900::/:/usr/sbin/nologin' >>"$root/etc/passwd"
echo 'iocom-net:x:900:' >>"$root/etc/group"
ln -s ../bin/modprobe "$root/usr/sbin/modprobe" # where the kernel looks for it
if [ "$kind" = nfs ]; then
	for program in usr/sbin/exportfs usr/sbin/rpc.mountd usr/sbin/rpc.nfsd sbin/mount.nfs; do
		add "$nfs/$program" "usr/sbin/$(basename "$program")"
	done
	ln -s mount.nfs "$root/usr/sbin/mount.nfs4"
	cp "$nfs"/etc/netconfig "$nfs"/etc/services "$nfs"/etc/protocols "$nfs"/etc/rpc "$root/etc/"
	mkdir -p "$root"/var/lib/nfs/v4recovery "$root"/run "$root"/etc/munge "$root"/var/{lib,log}/munge
fi
# By the sources, because the binary of a removed test may still be there.
[ "$kind" = nfs ] || for source in tests/bpf/test_*.c tests/shim/test_*.c tests/tools/*.c; do
	add "$build/${source%.c}" "${source%.c}"
done
for script in tests/vm/test_*.sh tests/vm/bench_*.sh tests/vm/movers.sh tests/vm/nfs_node.sh; do
	install -D "$script" "$root/$script"
done
for program in iocom iocomd iocom-shim iocom-net \
	$([ "$kind" = nfs ] || echo iocom-init iocom-hold iocom-tty.so tests/shim/audited_shim); do
	add "$build/$program" "build/$program"
done
# A shim loads libaudit when it has a record to send.
audit=$(ldconfig -p | sed -nE 's/.*libaudit\.so\.1 .*x86-64.* => (.*)/\1/p' | head -n 1)
[ -z "$audit" ] || add "$audit" "$audit"

# criu is of a newer suite, so it has the loader and the libraries of that suite for itself.
add_criu() { # PROGRAM
	local home loader=usr/lib64/ld-linux-x86-64.so.2 library
	home=$(dirname "$1")/root
	if [ ! -e "$home/$loader" ]; then
		add "$1" criu/criu
		return
	fi
	install -D "$home/$loader" "$root/criu/loader"
	install "$home/usr/sbin/criu" "$root/criu/program"
	for library in $("$home/$loader" --library-path "$home/usr/lib/x86_64-linux-gnu" --list "$home/usr/sbin/criu" |
		grep -oE "$home/[^ ]+"); do
		install "$library" "$root/criu/"
	done
	printf '#!/bin/sh\nexec /criu/loader --library-path /criu /criu/program "$@"\n' >"$root/criu/criu"
	chmod 755 "$root/criu/criu"
}
criu=${IOCOM_CRIU:-$(bash tests/lib/criu.sh 2>/dev/null)} || criu=
[ "$kind" = nfs ] || [ -z "$criu" ] || add_criu "$criu"

tree=lib/modules/$version
for folder in $folders; do
	modules+=" $(find "$kernel/modules/$tree/kernel/$folder" -name '*.ko*' -printf '%f ' |
		sed 's/\.ko[^ ]*//g')"
done
for module in $modules; do
	modprobe -d "$kernel/modules" -S "$version" --show-depends "$module" 2>/dev/null || true
done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | sort -u >"$root/tests/modules"
while read -r file; do
	install -D -m 644 "$file" "$root/usr/$tree/${file##*/"$tree"/}"
done <"$root/tests/modules"
cp "$kernel/modules/$tree"/modules.{order,builtin}* "$root/usr/$tree/" 2>/dev/null || true
depmod -b "$root/usr" "$version" 2>/dev/null # it complains about missing lists of built-in modules

install tests/vm/init "$root/init"
(cd "$root" && find . | busybox cpio -o -H newc -R 0:0 2>/dev/null) >"$out"
