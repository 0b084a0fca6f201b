#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# A file system whose server is gone: the client says so and ends, the node refuses with path-slow,
# the agents and other jobs go on, and all is well when the server is back. Two agents on this
# machine in mount namespace of their own; no testbed.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
[ "${1-}" = inside ] || exec unshare -m --propagation private bash "$0" inside
. tests/lib/tap.sh
. tests/lib/pair.sh
pair_begin
[ -e /dev/fuse ] || tap_skip_all "there is no /dev/fuse"
silent_end() {
	[ -z "${server-}" ] || { kill "$server" && wait "$server"; } 2>/dev/null
	pair_end
}
trap silent_end EXIT
mount=$PAIR/mount
mkdir "$mount"
python3 tests/cluster/silent_mount.py "$mount" >"$PAIR/server" 2>&1 &
server=$!
tap_true "a file system with a server" until_true 10 grep -x ready "$PAIR/server"
IOCOM_BUILD=$(realpath "$IOCOM_BUILD")
pair_munged n1
pair_munged n2
pair_agent n1 n2 --begin-limit-s 3
pair_agent n2 n1
tap_true "two nodes" until_true 15 pair_sees n1 2
cd "$mount" || exit 1

iocom() { # ARGUMENTS...: as nobody, from where we are
	IOCOM_RUN_DIR=$PAIR/n1/run timeout -k 1 60 setpriv --reuid 65534 --regid 65534 --clear-groups \
		"$IOCOM_BUILD/iocom" "$@"
}
# What a command says, in one line, and its status. The substitution ends when nobody has its output open.
says() { # COMMAND...
	local out status
	out=$("$@" 2>&1)
	status=$?
	echo "$(tr '\n' ' ' <<<"$out")[$status]"
}
tap_is "a job runs in a directory there" "$(says iocom run -n --node n2 -- pwd)" "$mount [0]"
tap_is "and one that reads there is known by its file" "$(iocom place --json -- cat file | jq .request.input_bytes)" 1000

kill -USR1 $server
# Each waits as long as it does, so all at once.
ask() { # NAME COMMAND...
	says "${@:2}" >"$PAIR/says.$1" &
}
from_root() { (cd / && iocom "$@"); }
path() { PATH=$mount:$PATH iocom run -n --node n2 -- true; }
path_from_root() { (cd / && path); }
ask run iocom run -n -- true
ask place iocom place -- true
ask there iocom run -n --node n2 -- true
ask here iocom run -n --node n1 -- true
ask data from_root run -n --data "$mount/file" -- true
ask program from_root run -n -- "$mount/file"
ask path path_from_root
ask word from_root run -n --node n2 -- echo "$mount/file"
tap_is "meanwhile the agents answer" "$(says from_root nodes --json | jq -r '.nodes | length' 2>/dev/null || from_root nodes --json | jq '.nodes | length')" 2
tap_is "and run jobs elsewhere and here" "$(from_root run -n --node n2 -- echo 2)$(from_root run -n --node n1 -- echo 1)" 21
wait_for_all() { # but for the daemons
	local name
	for name in run place there here data program path word; do
		until_true 15 test -s "$PAIR/says.$name"
	done
}
wait_for_all
said() { cat "$PAIR/says.$1"; }
tap_is "a job in that directory: the client says why not" "$(said run)" \
	"iocom run: working directory $mount: its file system did not answer within 5 s [125]"
tap_is "and so does iocom place" "$(said place)" \
	"iocom place: working directory $mount: its file system did not answer within 5 s [1]"
tap_like "a named node refuses with path-slow" "$(said there)" \
	"n2 .*working directory $mount: its file system did not answer within 1000 ms \\[125\\]"
tap_like "this node by name: the job does not begin, and says so" "$(said here)" "3 s.*\\[125\\]"
tap_is "an input there" "$(said data)" \
	"iocom run: --data '$mount/file': its file system did not answer within 5 s [125]"
tap_is "a program there" "$(said program)" "iocom run: $mount/file: its file system did not answer within 5 s [125]"
tap_is "a directory of PATH there" "$(said path)" \
	"iocom run: true: the file system of a directory of PATH did not answer within 5 s [125]"
tap_is "a file that the command only names does not hinder it" "$(said word)" \
	"iocom: the file system of a file that the command names did not answer within 5 s; how much the job reads is not known $mount/file [0]"

kill -USR2 $server
tap_true "the server is back: a job runs in that directory" until_true 15 iocom run -n -- test -e file
tap_is "and at the other node" "$(says iocom run -n --node n2 -- pwd)" "$mount [0]"
left() { ! pgrep -f "^$IOCOM_BUILD/iocom (run|place)" >/dev/null; }
tap_true "nothing is left that waits" until_true 15 left
cd / || exit 1
tap_done
