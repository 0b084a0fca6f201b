#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Exit statuses of all commands, as the table of iocom(1) has them: wrong usage, no agent,
# help.  Commands that return a job's status use 125 (rsh 255) for iocom's own errors; all others
# use 1 and 2.
set -uo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh disable=SC1091
. "$here/tests/lib/tap.sh"
iocom=${IOCOM_BUILD:-$here/build}/iocom
dir=$(mktemp -d /tmp/iocom-statuses-XXXXXX)
trap 'rm -rf "$dir"' EXIT
export IOCOM_RUN_DIR=$dir/none

# Prints its exit status, and whether it wrote a sentence of its own to standard error.
ends() {
	local rc
	timeout 60 "$iocom" "$@" >"$dir/out" 2>"$dir/err" </dev/null
	rc=$?
	[ -s "$dir/err" ] && echo "$rc said" || echo "$rc"
}
mapfile -t commands < <("$iocom" --help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
tap_calc "the help lists the commands" "${#commands[@]} >= 16"
for c in "${commands[@]}"; do
	case $c in
	run | attach | wait | batch) usage=125 failed=125 ;;
	rsh) usage=255 failed=255 ;;
	*) usage=2 failed=1 ;;
	esac
	case $c in sim | replay) [ -x "${iocom%/*}/iocom-sim" ] || {
		tap_skip "$c" "no iocom-sim"
		continue
	} ;; esac
	tap_is "$c: an unknown option" "$(ends "$c" --no-such-option)" "$usage said"
	case $c in
	run | place) words=(-- true) ;;
	rsh) words=(n1 true) ;;
	explain | attach | wait | kill) words=(no-such-job) ;;
	migrate) words=(no-such-job n1) ;;
	batch) # its workers ask the agent
		words=("$dir/list")
		echo true >"$dir/list"
		;;
	complete) words=(jobs) ;;
	record) words=(--out "$dir/recording") ;;
	*) words=() ;;
	esac
	case $c in
	top | doctor | calibrate | complete | sim | replay) ;; # they need no agent (top as root)
	*) tap_is "$c: no agent" "$(ends "$c" "${words[@]}")" "$failed said" ;;
	esac
	tap_is "$c --help" "$(ends "$c" --help)" 0
	[ "$c" = sim ] || [ "$c" = replay ] ||
		tap_like "$c --help: says its exit statuses" "$(cat "$dir/out")" '[Ee]xit status'
done
for c in run attach wait batch; do
	tap_like "$c --help: says what Ctrl-C does" "$("$iocom" "$c" --help)" 'Ctrl-C'
done
tap_is "run: no command" "$(ends run)" "125 said"
tap_is "rsh: no node" "$(ends rsh)" "255 said"
tap_is "explain, kill, place: nothing named" "$(ends explain) $(ends kill) $(ends place)" "2 said 2 said 2 said"
tap_is "attach, wait: no job" "$(ends attach) $(ends wait)" "125 said 125 said"
ends nods >"$dir/rc"
tap_is "one that is nearly there is named" "$(cat "$dir/err")" \
	"iocom: there is no command 'nods'; did you mean nodes? \`iocom --help\` lists all"
tap_is "no command at all, and an unknown one" "$(ends) $(ends frobnicate) $(ends help frobnicate)" \
	"2 said 2 said 2 said"
tap_is "help" "$(ends help) $(ends --help) $(ends help run) $(ends --version)" "0 0 0 0"
tap_is "a command that does not exist: 127, before the agent is asked" "$(ends run -- no-such-command-here)" "127 said"
tap_is "a command that cannot be executed: 126" "$(ends run -- /etc/passwd)" "126 said"
mkdir "$dir/bin" "$dir/shut"
echo x >"$dir/bin/plain"
tap_is "a command on PATH that cannot be executed: 126" "$(PATH=$dir/bin:$PATH ends run -- plain)" "126 said"
chmod 0 "$dir/shut"
tap_is "a directory of PATH that may not be searched is skipped: 127" \
	"$(PATH=$dir/shut:$dir/missing:$PATH ends run -- no-such-command-here)" "127 said"

# --- sentences ---
said() { ends "$@" >/dev/null; cat "$dir/err"; }
for bad in "=an entry is empty" "A,,B=an entry is empty" "A,=an entry is empty" "X@Y=v=X@Y' is not the name" \
	"1A=1A' is not the name" "=x=no name before" "A B=not the name of a variable"; do
	value=${bad%=*}
	tap_like "run --env '$value': refused, and why" \
		"$(ends run --env "$value" -- true) $(cat "$dir/err")" "^125 said iocom run: .*${bad##*=}"
done
tap_like "batch --env: the same" "$(ends batch --env A,,B "$dir/list") $(cat "$dir/err")" '^125 said iocom batch: .*empty'
for good in all none A A=1 A=,B "A=x y,_b2=z=1"; do
	tap_like "run --env '$good': accepted" "$(said run --env "$good" -- true)" 'no agent answers'
done

# --- options of ssh ---
for o in -N -s "-O check" "-Q cipher" -A "-J x" "-W a:1" "-w 0" -X -Y "-L 1:2:3" "-R 1:2:3" "-D 1"; do
	# shellcheck disable=SC2086 # words
	tap_like "rsh $o: refused by its name" "$(ends rsh $o n1 true) $(cat "$dir/err")" "^255 said iocom rsh: .*${o%% *};"
done
for o in ProxyJump=x "ProxyCommand nc" ForwardAgent=yes Tunnel=yes SessionType=none HostName=n2 RequestTTY=maybe SetEnv=PATH=x \
	SetEnv=x User= =x BatchMode; do
	tap_like "rsh -o '$o': refused" "$(ends rsh -o "$o" n1 true) $(cat "$dir/err")" '^255 said iocom rsh: .*see iocom rsh --help'
done
for o in -1 -2 -4 -6 -a -C -g -K -k -M -q -x -y -T -n "-B x" "-b x" "-c x" "-E x" "-F x" "-I x" "-i x" "-m x" "-P x" \
	"-p 22" "-S none" "-o BatchMode=yes" "-o ControlMaster=no" "-o StrictHostKeyChecking=no" "-o ForwardAgent=no" \
	"-o SendEnv=LC_*" "-oConnectTimeout=3" "-vv" "-tt"; do
	# shellcheck disable=SC2086 # words
	tap_is "rsh $o: accepted, before the node and after it" \
		"$({ said rsh $o n1 true; said rsh n1 $o true; } | grep -c 'no agent answers')" 2
done
tap_is "rsh -f without a command, and with -t" "$(ends rsh -f n1) $(ends rsh -f -t n1 true)" "255 said 255 said"
tap_is "rsh -f: no agent" "$(ends rsh -f n1 true)" "255 said"
tap_is "rsh -G" "$(ends rsh -G -p 22 n1) $(tail -n 1 "$dir/out")" "0 hostname n1"
tap_like "rsh -V" "$(said rsh -V)" '^iocom rsh, iocom [0-9]'
tap_like "rsh -- ends the options: what follows the node is a command" "$(said rsh -- n1 -N)" 'no agent answers'
tap_is "without -- they are read as options" "$(ends rsh n1 -N)" "255 said"
tap_done
