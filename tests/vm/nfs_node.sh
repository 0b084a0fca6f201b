#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# One node of the cluster of nfs.sh: `nfs_node.sh server|client1|client2`, inside a test machine. The
# server exports a directory of its disk, and the clients mount it at the same path; all run munged
# and iocomd. client1 tests, and tells the others through iocom when it is over. Jobs' I/O on the
# shared file system shows as such in the class and not on the client's disk; the decision looks at
# the server's disk; a job stays where the page cache has its data, and goes there; an agent whose
# server is gone says so and answers.
set -u
node=$1
n=0
build=${IOCOM_BUILD:-/build}
share=/var/tmp/share
export IOCOM_RUN_DIR=/run/iocom
ok() { # DESCRIPTION COMMAND...
	what=$1
	shift
	n=$((n + 1))
	if "$@" >/tmp/out 2>&1; then
		echo "ok $n - $what"
	else
		echo "not ok $n - $what"
		tail -n 40 /tmp/out | sed 's/^/# | /'
		tail -n 3 /tmp/iocomd.log | sed 's/^/# log: /'
	fi
}
soon() { # SECONDS COMMAND...: until it is true
	end=$(($(date +%s) + $1))
	shift
	until "$@"; do
		[ "$(date +%s)" -lt $end ] || return 1
		sleep 0.5
	done
}
address() {
	case $1 in
	server) echo 10.9.0.1 ;;
	client1) echo 10.9.0.11 ;;
	client2) echo 10.9.0.21 ;;
	esac
}
network() {
	modprobe virtio_net
	if [ "$node" = server ]; then # it bridges its clients
		modprobe bridge
		ip link add br0 type bridge
		for card in eth0 eth1; do
			ip link set $card master br0
			ip link set $card up
		done
		card=br0
	else
		card=eth0
	fi
	ip link set $card up
	ip addr add "$(address "$node")/24" dev $card
}
agent() {
	mkdir -p /etc/iocom /etc/munge /run/munge /var/lib/munge /var/log/munge
	printf %s "$iocom_key" >/etc/munge/munge.key
	chmod 400 /etc/munge/munge.key
	chmod 755 /run/munge /var/tmp
	munged --force --num-threads=2 >/tmp/munged.log 2>&1
	{
		printf '[iocom]\nname = %s\nlisten = %s\nallow_root = yes\n' "$node" "$(address "$node")"
		printf 'run_dir = /run/iocom\nstate_dir = /var/lib/iocom\n'
		# What a disk and a link can do is told, not learned: it must not depend on the emulator.
		printf 'disk_mb_per_s = 20\ndisk_fixed_ms = 1\nnetwork_mb_per_s = 100\n'
		printf 'peers = '
		for peer in server client1 client2; do
			[ "$peer" = "$node" ] || printf '%s, ' "$(address $peer)"
		done | sed 's/, $/\n/'
	} >/etc/iocom/iocom.conf
	"$build/iocomd" --shim "$build/iocom-shim" --net-program "$build/iocom-net" 2>>/tmp/iocomd.log &
	soon 60 answers
}
answers() { "$build/iocom" nodes >/dev/null 2>&1; }
knows() { [ "$("$build/iocom" nodes --json | grep -o '"alive": *true' | wc -l)" -eq "$1" ]; }
over() { [ -e /run/over ]; }

serve() {
	modprobe nfsd
	mkdir -p $share/work /var/lib/nfs
	for file in data other; do
		dd if=/dev/urandom of=$share/work/$file bs=1M count=20 2>/dev/null
	done
	mount -t nfsd nfsd /proc/fs/nfsd
	mount -t tmpfs tmpfs /var/lib/nfs
	mkdir -p /var/lib/nfs/v4recovery
	echo "$share 10.9.0.0/24(rw,no_root_squash,no_subtree_check,fsid=1)" >/etc/exports
	exportfs -ra
	rpc.nfsd -N 3 -V 4.2 -G 10 -L 10 2
	rpc.mountd -N 3 -V 4
}
take() {
	modprobe nfsv4
	mkdir -p $share
	soon 90 mount -t nfs4 -o vers=4.2,timeo=50,actimeo=1 10.9.0.1:$share $share >/tmp/mount 2>&1
}

network
case $node in
server)
	serve >/tmp/serve 2>&1 || sed 's/^/# /' /tmp/serve
	agent || echo "not ok 1 - the agent of $node answers"
	soon 600 over
	exit 0
	;;
client2)
	take || echo "not ok 1 - $node mounts: $(cat /tmp/mount)"
	agent || echo "not ok 1 - the agent of $node answers"
	soon 600 over
	exit 0
	;;
esac
uptime
ok "the client mounts" take
ok "the agent answers" agent
ok "it knows server and client" soon 90 knows 3
cd $share/work || exit 1
uptime
time "$build/iocom" run -n --node client1 -- dd if=data of=/dev/null bs=128K
uptime
"$build/iocom" profile show dd
"$build/iocom" profile show dd --json
time "$build/iocom" run -n --node client1 -- dd if=data of=/dev/null bs=128K
"$build/iocom" profile show dd
"$build/iocom" place -- dd if=data of=/dev/null bs=128K
"$build/iocom" place -- dd if=other of=/dev/null bs=128K
"$build/iocom" nodes
uptime
for peer in server client2; do
	time "$build/iocom" run -n --node $peer -- touch /run/over
done
uptime
echo "1..$n"
