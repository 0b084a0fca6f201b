#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# A file system whose server is gone: the client says so and ends, the node refuses with path-slow,
# the agents and other jobs go on, and all is well when the server is back. Two agents on this
# machine in a mount namespace of their own; no testbed.
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
pair_agent n1 n2
pair_agent n2 n1
tap_true "two nodes" until_true 15 pair_sees n1 2

# As nobody, from a directory. A shell in it would itself look at it; env only goes there.
iocom() { # DIRECTORY ARGUMENTS...
	IOCOM_RUN_DIR=$PAIR/n1/run timeout -k 1 40 setpriv --reuid 65534 --regid 65534 --clear-groups \
		env -C "$1" "$IOCOM_BUILD/iocom" "${@:2}"
}
# What a command says, in one line, and its status. The substitution ends when nobody has its output open.
says() { # COMMAND...
	local out status
	out=$("$@" 2>&1)
	status=$?
	echo "$(tr '\n' ' ' <<<"$out")[$status]"
}
tap_is "a job runs in a directory there" "$(says iocom "$mount" run --stdin none --node n2 -- pwd)" "$mount [0]"

kill -USR1 $server
tap_true "the server is gone" until_true 10 grep -x silent "$PAIR/server"
# Each waits as long as it does, so all at once.
ask() { # NAME COMMAND...
	says "${@:2}" >"$PAIR/says.$1" &
}
path() {
	IOCOM_RUN_DIR=$PAIR/n1/run timeout -k 1 40 env "PATH=$mount:$PATH" "$IOCOM_BUILD/iocom" run --stdin none --node n1 -- true
}
ask run iocom "$mount" run --stdin none -- true
ask place iocom "$mount" place -- true
ask there iocom "$mount" run --stdin none --node n2 -- true
ask data iocom / run --stdin none --data "$mount/file" -- true
ask program iocom / run --stdin none -- "$mount/file"
ask path path
ask word iocom / run --stdin none --node n2 -- echo "$mount/file"
tap_is "meanwhile the agents answer" "$(pair_on n1 nodes --json | jq '.nodes | length') $(pair_on n2 nodes --json | jq '.nodes | length')" "2 2"
tap_is "and run jobs elsewhere and here" "$(iocom / run --stdin none --node n2 -- echo 2)$(iocom / run --stdin none --node n1 -- echo 1)" 21
wait_for_all() { # but for the daemons
	local name
	for name in run place there data program path word; do
		until_true 10 test -s "$PAIR/says.$name"
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
tap_is "an input there" "$(said data)" \
	"iocom run: --data '$mount/file': its file system did not answer within 5 s [125]"
tap_is "a program there" "$(said program)" "iocom run: $mount/file: its file system did not answer within 5 s [125]"
tap_is "a directory of PATH there" "$(said path)" \
	"iocom run: true: the file system of a directory of PATH did not answer within 5 s [125]"
tap_is "a file that the command only names does not hinder it" "$(said word)" \
	"iocom: the file system of a file that the command names did not answer within 5 s; how much the job reads is not known $mount/file [0]"

kill -USR2 $server
tap_true "the server is back: a job runs in that directory" until_true 15 iocom "$mount" run --stdin none -- test -e file
tap_is "and at the other node" "$(says iocom "$mount" run --stdin none --node n2 -- pwd)" "$mount [0]"
left() { ! pgrep -f "^$IOCOM_BUILD/iocom (run|place)" >/dev/null; }
tap_true "nothing is left that waits" until_true 15 left
tap_done
