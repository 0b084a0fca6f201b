#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# `iocom rsh`: what ssh would do, and programs that use a remote shell (rsync, GNU parallel).
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/cluster.sh
cluster_up --nodes 2 --disk 40,40 --mem 1500
tap_true "every node hears of every other" until_true 10 sees n1 2
rsh() { on n1 iocom rsh "$@"; }
status() { "$@" >/dev/null 2>&1; echo $?; }
fails() { "$@" >/dev/null 2>"$SCRATCH/e"; echo "$?"; }

# --- as ssh ---
tap_is "it runs there" "$(rsh n2 hostname)" n2
tap_is "the words are joined and a shell reads them" "$(rsh n2 echo "a  b" '"c  d"' '$((1+2))' '|' cat)" 'a b c  d 3'
tap_is "in the home directory" "$(rsh n2 pwd)" "$(getent passwd root | cut -d: -f6)"
tap_is "a fresh environment" "$(SECRET=x rsh n2 'echo "[$SECRET][$USER]"')" '[][root]'
tap_is "a service's account is not let in: min_uid" \
	"$(fails "$TESTBED" exec n1 --user games -- iocom rsh n2 true)" 255
tap_like "the sentence names the setting" "$(cat "$SCRATCH/e")" 'uid [0-9]+ is below 1000 \(min_uid\)'
tap_is "an account without a home" "$(fails "$TESTBED" exec n1 --user nobody -- iocom rsh n2 true)" 255
tap_like "the sentence names it" "$(cat "$SCRATCH/e")" 'home directory /nonexistent'
tap_is "its exit status" "$(status rsh n2 exit 7)" 7
tap_is "death by a signal" "$(status rsh n2 'kill -TERM $$')" 143
tap_is "the shell's own 127" "$(status rsh n2 no-such-command)" 127
tap_is "125 of the command stays 125" "$(status rsh n2 exit 125)" 125
tap_is "standard input goes along" "$(echo hello | rsh n2 tr a-z A-Z)" HELLO
tap_is "-n: it does not" "$(echo hello | rsh -n n2 wc -c)" 0
tap_is "-n behind the node, as rsync has it" "$(echo hello | rsh n2 -n wc -c)" 0
tap_is "-l and USER@ name oneself" "$(rsh -l root n2 hostname)$(rsh root@n2 hostname)" n2n2
tap_is "options of ssh without effect" "$(rsh -q -x -T -o BatchMode=yes -p 22 n2 hostname)" n2
tap_is "the job's class is its program's name" \
	"$(rsh n2 /bin/true ";" true; on n1 iocom jobs --all --json | jq -r '[.jobs[]?, .[]?] | map(objects | select(has("class"))) | .[0].class')" true

tap_is "-t: at a terminal" "$(rsh -t n2 'test -t 0 && hostname' </dev/null | tr -d '\r')" n2
tap_is "and without it at none" "$(rsh n2 'test -t 1 || hostname' </dev/null)" n2
tap_is "no command: a shell reads standard input" "$(echo 'hostname; exit 9' | rsh n2; echo $?)" $'n2\n9'

# --- what is refused: 255, as ssh, and a sentence ---
tap_is "another user" "$(fails rsh -l bob n2 true)" 255
tap_like "says why" "$(cat "$SCRATCH/e")" 'not bob'
tap_is "an unknown node" "$(fails rsh nowhere true)" 255
tap_like "names it, and itself" "$(cat "$SCRATCH/e")" '^iocom rsh: .*nowhere'
tap_is "forwarding" "$(fails rsh -L 1:2:3 n2 true)" 255
tap_is "no agent" "$(fails rsh --run-dir /nowhere n2 true)" 255

# --- programs that need a remote shell ---
if command -v rsync >/dev/null; then
	on n1 sh -c "mkdir -p $DISK/from/deep && head -c 5000000 /dev/urandom >$DISK/from/a &&
		echo x >$DISK/from/deep/b && ln -s a $DISK/from/link"
	truth=$(on n1 sh -c "cd $DISK/from && find . -type f | sort | xargs sha256sum")
	there() { on n2 sh -c "cd $DISK/to && find . -type f | sort | xargs sha256sum"; }
	tap_is "rsync to a node" "$(status on n1 rsync -a -e 'iocom rsh' "$DISK/from/" "n2:$DISK/to")" 0
	tap_is "the same bytes" "$(there)" "$truth"
	tap_is "rsync from a node" "$(status on n1 rsync -a -e 'iocom rsh' "n2:$DISK/to/" "$DISK/back")" 0
	tap_is "and back" "$(on n1 sh -c "cd $DISK/back && find . -type f | sort | xargs sha256sum")" "$truth"
else
	tap_skip "rsync" "not installed"
fi
if parallel --version 2>/dev/null | grep GNU >/dev/null; then
	tap_is "GNU parallel on two nodes" \
		"$(on n1 parallel --ssh 'iocom rsh' -S 2/n1,2/n2 --nice 0 'hostname; echo {}' ::: 1 2 3 4 2>/dev/null | grep -cE '^[1-4]$')" 4
else
	tap_skip "GNU parallel" "not installed (another program of that name may be)"
fi
tap_done
