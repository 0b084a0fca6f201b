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
		tail -n 12 /tmp/out | cut -c 1-500 | sed 's/^/# | /'
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
	printf %s "${iocom_key:?}" >/etc/munge/munge.key
	chmod 400 /etc/munge/munge.key
	chmod 755 /run/munge /var/tmp
	munged --force --num-threads=2 >/tmp/munged.log 2>&1
	{
		printf '[iocom]\nname = %s\nlisten = %s\nallow_root = yes\n' "$node" "$(address "$node")"
		printf 'run_dir = /run/iocom\nstate_dir = /var/lib/iocom\n'
		# What a disk and a link can do is told, not learned: it must not depend on the emulator.
		printf 'disk_mb_per_s = 20\ndisk_fixed_ms = 1\nnetwork_mb_per_s = 100\nbegin_limit_s = 20\n'
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
	for file in data other third fourth fifth big; do
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
	sleep 2 # the job that says so ends
	exit 0
	;;
client2)
	take || echo "not ok 1 - $node mounts: $(cat /tmp/mount)"
	agent || echo "not ok 1 - the agent of $node answers"
	soon 600 test -e /run/leave -o -e /run/over
	if ! over; then
		umount -l $share
		mkdir -p $share/work
		: >/run/left
		soon 600 over
	fi
	sleep 2
	exit 0
	;;
esac
# What the class NAME needs of FIELD, times 1000, as a whole number.
needs() { # NAME FIELD
	"$build/iocom" profile show "$1" --json | tr -d '\n ' |
		sed -n "s/.*\"$2\":{\"value\":\([0-9.]*\).*/\1/p" | awk '{ printf "%d", $1 * 1000 }'
}
between() { [ "$2" -ge "$1" ] && [ "$2" -le "$3" ]; } # LEAST VALUE MOST
at() { # NODE COMMAND...: there, from /
	peer=$1
	shift
	(cd / && timeout -k 1 60 "$build/iocom" run --stdin none --node "$peer" -- "$@")
}
# shellcheck disable=SC2016 # for awk
sectors() { at "$1" awk '$3 == "vda" { print $6 }' /proc/diskstats; } # read, of 512 bytes
forget() { at "$1" sh -c 'echo 3 >/proc/sys/vm/drop_caches'; }
runs() { "$build/iocom" run --stdin none --node "$1" -- md5sum "$2"; } # NODE FILE
# Decides on a file that a job of little computation reads, and keeps the view. The answer is that of
# the same view without what earlier runs in this emulator corrected.
decide() { # FILE [CPU-TIME]
	"$build/iocom" place --cpu-time "${2:-0.1}" --force --save-view /tmp/view --json -- md5sum "$1" >/dev/null &&
		tr -d '\n' </tmp/view | sed 's/, *"corrections": *{[^}]*}//; s/, *"correction": *[0-9.]*//' >/tmp/plain &&
		"$build/iocom" place --view /tmp/plain --policy least-delay --json >/tmp/place
}
chosen() { tr -d '\n ' </tmp/place | sed -n 's/.*"node":"\([a-z0-9]*\)","nodes".*/\1/p'; }
at_home_ms() { tr -d '\n ' </tmp/place | sed -n 's/.*"home_ms":\([0-9]*\).*/\1/p'; }
view_has() { tr -d '\n ' </tmp/view | grep -e "$1" >/dev/null; }
decides() { # NODE FILE [CPU-TIME]
	decide "$2" "${3:-0.1}" && echo "chose $(chosen)" && [ "$(chosen)" = "$1" ]
}
leaves() { decide "$1" "$2" && echo "chose $(chosen)" && [ "$(chosen)" != client1 ]; }
explains() { # FILE TEXT
	"$build/iocom" place -- md5sum "$1" | tr '\n' ' ' >/tmp/text
	cat /tmp/text
	grep -e "$2" /tmp/text >/dev/null
}

ok "a client mounts" take
ok "its agent answers" agent
ok "it knows server and client" soon 90 knows 3
cd $share/work || exit 1

# What happens when server or link are gone; alone by IOCOM_VM_GONE=only.
gone() {
	at client2 touch /run/leave # it unmounts by itself
	soon 30 at client2 test -e /run/left
	at server sh -c 'echo 0 >/proc/fs/nfsd/threads' 2>/dev/null
	sleep 2 # attributes of the directory are believed for a second
	refused() {
		at client2 sh -c "cd $share/work && $build/iocom run --stdin none --node client1 -- true" 2>&1 | tr '\n' ' ' |
			tee /tmp/refused
		grep -e "working directory $share/work: its file system did not answer within 1000 ms" /tmp/refused >/dev/null
	}
	ok "the server is gone: a client's agent says so" refused
	sed 's/^/# /; s/$/\n/' /tmp/refused
	ok "and answers" answers
	own() { # the client that stands in the dead directory
		timeout -k 1 60 "$build/iocom" run --stdin none -- true >/tmp/own 2>&1
		[ $? -eq 125 ] && grep -e "^iocom run: working directory $share/work: its file system did not answer within 5 s" /tmp/own
	}
	ok "a job in that directory: the client says why not" own
	by_name() {
		timeout -k 1 60 "$build/iocom" run --stdin none --node client1 -- true >/tmp/own 2>&1
		[ $? -eq 125 ] && grep -e "did not begin on node client1 within 20000 ms: the file system of its directory $share/work" /tmp/own
	}
	ok "by the node's name: it does not begin, and says why" by_name
	ok "and runs other jobs" at client1 true
	at server rpc.nfsd -N 3 -V 4.2 -G 10 -L 10 2
	reads() { timeout -k 1 20 dd if=$share/work/fifth of=/dev/null bs=1M 2>/dev/null; }
	ok "the server is back: the client reads on" soon 90 reads
	ok "and jobs run in that directory" soon 60 timeout -k 1 30 "$build/iocom" run --stdin none --node client1 -- test -e fifth

	ip link set eth0 down
	ok "the link is cut: the agent answers" answers
	ok "and runs jobs" at client1 true
	ok "but not in that directory: the client does not believe the attributes that it has" own
	ok "it says that the others are silent" soon 30 knows 1
	ok "and still answers" answers
	ip link set eth0 up
	ok "the link is back: it knows them again" soon 60 knows 3
	ok "and the client reads on" soon 60 reads
}
if [ "${iocom_gone:-}" = only ]; then
	gone
	for peer in client2 server; do
		at $peer touch /run/over
	done
	echo "1..$n"
	exit 0
fi

forget server
before=$(sectors server) own=$(awk '$3 == "vda" { print $6 }' /proc/diskstats)
ok "a job reads a file of the shared file system" runs client1 data
read=$((($(sectors server) - before) / 2048)) own=$(($(awk '$3 == "vda" { print $6 }' /proc/diskstats) - own))
echo "# a job at a client read 20 MiB: the server's disk $read MiB, the client's $own sectors"
ok "its class learns these bytes as shared ones, exactly" between 20971 "$(needs md5sum shared_read_mb)" 20972
ok "and no request of the client's disk" between 0 "$(needs md5sum requests)" 0
ok "the client's disk read nothing of it" between 0 "$own" 64
ok "the server's disk did" between 20 "$read" 24

ok "the decision knows who serves it" decide other
ok "and looks at that node's disk" view_has '"shared":{"read_mb":20.97[0-9]*,"written_mb":0.0,"server":"server"}'
idle=$(at_home_ms)
ok "explain says it in numbers" explains other 'it reads 21.0 MB and writes 0.0 MB there; server serves it, whose disk is'
decide data
ok "and who has the file in its page cache" view_has '"cached":{"client1":20.97'
cached=$(at_home_ms)
echo "# expected at the client: $cached ms with the file cached, $idle ms without"
ok "which costs less" test "${idle:-0}" -ge $((${cached:-$idle} + 1000))
ok "explain says that, too" explains data 'Page caches have of it: 21.0 MB at client1'
runs client1 data >/dev/null
ok "a job whose file is cached reads nothing from the server" decide data
ok "so it is taken to be there" view_has '"cached":{"client1":20.97'

"$build/iocom" run --detach --stdin none --node client1 -- sh -c 'until [ -e /run/stop ]; do :; done' >/dev/null
ok "beside a job that computes it stays where its file is" soon 30 decides client1 data 0.3
ok "and leaves if it must read the file anyway" soon 30 leaves other 0.3
: >/run/stop

at server sh -c "until [ -e /run/stop ]; do dd if=$share/work/big of=/dev/null bs=1M iflag=direct 2>/dev/null; done" &
reader=$!
slower() { decide other && [ "$(at_home_ms)" -ge $((idle * 6 / 5)) ]; }
ok "a busy disk of the server delays the job wherever it runs" soon 60 slower
echo "# expected at the client: $idle ms beside an idle disk of the server, $(at_home_ms) ms beside a busy one"
"$build/iocom" nodes | sed 's/^/# /'
at server touch /run/stop
wait $reader

forget client2
# What client2 does as a home.
cat >$share/work/home2 <<'END'
cd /var/tmp/share/work
iocom=$1/iocom
$iocom run --stdin none --node client1 -- md5sum third >/dev/null || exit
$iocom place --cpu-time 0.1 --json -- md5sum third
END
sends() {
	at client2 sh $share/work/home2 "$build" >/tmp/place || return
	cat /tmp/place
	[ "$(chosen)" = client1 ]
}
ok "another home sends the job where its file is cached" sends

forget server
"$build/iocom" profile forget md5sum >/dev/null
ok "a job runs at the server" runs server fourth
ok "what its disk did there is shared I/O of the class" between 20971 "$(needs md5sum shared_read_mb)" 22100
ok "and no request of a node's own disk" between 0 "$(needs md5sum requests)" 0
decide fourth
ok "the server's cache has the file" view_has '"cached":{"server":2[01][.]'
ok "so the job goes to the server" decides server fourth

gone
for peer in client2 server; do
	at $peer touch /run/over
done
echo "1..$n"
