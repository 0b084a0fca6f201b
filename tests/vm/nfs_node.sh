#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# probe
node=$1
for m in virtio_net ext4 bridge; do modprobe $m; done
case $node in
server)
	modprobe nfsd
	ip link add br0 type bridge
	for l in eth0 eth1; do ip link set $l master br0; ip link set $l up; done
	ip link set br0 up; ip addr add 10.9.0.1/24 dev br0
	mkdir -p /var/tmp/share; dd if=/dev/urandom of=/var/tmp/share/data bs=1M count=20
	mount -t nfsd nfsd /proc/fs/nfsd; mount -t tmpfs tmpfs /var/lib/nfs; mkdir /var/lib/nfs/v4recovery
	rm -f /proc/fs/nfsd/nfsv4recoverydir
	echo 5 >/proc/fs/nfsd/nfsv4gracetime; echo 5 > /proc/fs/nfsd/nfsv4leasetime
	ls /proc/fs/nfsd
	echo '/var/tmp/share 10.9.0.0/24(rw,no_root_squash,sync,no_subtree_check,fsid=1)' >/etc/exports
	exportfs -ra; cat /var/lib/nfs/etab
	rpc.nfsd -N 3 -V 4 -V 4.2 -U 2 ; echo nfsd $?
	rpc.mountd -N 3 -V 4; echo mountd $?
	cat /proc/fs/nfsd/threads /proc/fs/nfsd/versions
	sleep 40; cat /proc/fs/nfsd/exports ;;
*)
	modprobe nfsv4
	ip link set eth0 up; ip addr add 10.9.0.${node#client}1/24 dev eth0
	sleep 10; ping -c 1 10.9.0.1
	mkdir -p /mnt/share
	time mount -v -t nfs4 -o vers=4.2,timeo=50 10.9.0.1:/var/tmp/share /mnt/share
	grep nfs /proc/self/mountinfo
	ls -l /mnt/share; time md5sum /mnt/share/data ;;
esac
echo "ok 1 - probe"
