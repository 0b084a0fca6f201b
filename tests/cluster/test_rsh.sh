#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# `iocom rsh`: it does what ssh would do, and programs use it as a remote shell (rsync, GNU
# parallel).
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/cluster.sh
cluster_up --nodes 2 --disk 40,40 --mem 1500
tap_true "every node hears of every other" until_true 10 sees n1 2
rsh() { on n1 iocom rsh "$@"; }
status() { "$@" >/dev/null 2>&1; echo $?; }
fails() { "$@" >/dev/null 2>"$SCRATCH/e"; echo "$?"; }

# --- like ssh ---
tap_is "it runs there" "$(rsh n2 hostname)" n2
tap_is "the words are joined and a shell reads them" "$(rsh n2 echo "a  b" '"c  d"' '$((1+2))' '|' cat)" 'a b c  d 3'
tap_is "in the home directory" "$(rsh n2 pwd)" "$(getent passwd root | cut -d: -f6)"
tap_is "a fresh environment" "$(SECRET=x rsh n2 'echo "[$SECRET][$USER]"')" '[][root]'
tap_is "a service's account is not let in: min_uid" \
	"$(fails "$TESTBED" exec n1 --user games -- iocom rsh n2 true)" 255
tap_like "the sentence names the setting" "$(cat "$SCRATCH/e")" 'uid [0-9]+ is below 1000 \(min_uid\)'
# A user of this machine whose home does not exist, and who has a shell.
sed 's,^\(root:.*\):[^:]*:[^:]*$,\1:/nonexistent:/bin/sh,' /etc/passwd >"$SCRATCH/passwd"
homeless() { on n1 unshare -m sh -c "mount --bind $SCRATCH/passwd /etc/passwd && iocom $*"; }
tap_is "no home directory at the node: / as sshd has it" \
	"$(homeless rsh n2 pwd 2>"$SCRATCH/e"; cat "$SCRATCH/e")" \
	$'/\niocom rsh: there is no home directory /nonexistent on n2; starting in /'
tap_is "nor on this machine" "$(homeless rsh n1 pwd 2>"$SCRATCH/e"; grep -c 'on n1; starting in /$' "$SCRATCH/e")" $'/\n1'
tap_is "a home that is there: nothing is said" "$(rsh n2 pwd 2>&1)$(rsh n1 pwd 2>&1)" \
	"$(getent passwd root | cut -d: -f6)$(getent passwd root | cut -d: -f6)"
tap_is "its exit status" "$(status rsh n2 exit 7)" 7
tap_is "death by a signal" "$(status rsh n2 'kill -TERM $$')" 143
tap_is "the shell's own 127" "$(status rsh n2 no-such-command)" 127
tap_is "125 of the command stays 125" "$(status rsh n2 exit 125)" 125
tap_is "standard input goes along" "$(echo hello | rsh n2 tr a-z A-Z)" HELLO
tap_is "-n: it does not" "$(echo hello | rsh -n n2 wc -c)" 0
tap_is "-n behind the node, as rsync has it" "$(echo hello | rsh n2 -n wc -c)" 0
tap_is "-l and USER@ name oneself" "$(rsh -l root n2 hostname)$(rsh root@n2 hostname)" n2n2
tap_is "options of ssh without effect" "$(rsh -q -x -T -o BatchMode=yes -p 22 n2 hostname)" n2
tap_is "and behind the node, as ssh has it" "$(rsh n2 -q -x -T -o BatchMode=yes -p 22 -l root hostname)" n2
tap_is "options end with the command's first word" "$(rsh n2 echo -q -t)" "-q -t"
tap_is "-t behind the node: at a terminal" "$(rsh n2 -t 'test -t 0 && hostname' </dev/null | tr -d '\r')" n2
tap_is "-o RequestTTY=force, and no" "$(rsh -o RequestTTY=force n2 'test -t 0 && hostname' </dev/null | tr -d '\r') \
$(rsh -t -o RequestTTY=no n2 'test -t 0 || echo none' </dev/null)" "n2 none"
tap_is "-o SendEnv: by name and by pattern, nothing else, and not what is a login's" \
	"$(MY_A=1 MY_B=2 OTHER=3 HOME=/x rsh -o 'SendEnv=MY_* HOME' n2 'echo $MY_A$MY_B[$OTHER]$HOME')" "12[]$(getent passwd root | cut -d: -f6)"
tap_is "-o SetEnv: a value may have commas" "$(rsh -oSetEnv=LIST=a,b,c n2 'echo $LIST')" a,b,c
tap_is "-o StdinNull=yes" "$(echo hello | rsh -o StdinNull=yes n2 wc -c)" 0
: >"$SCRATCH/f"
tap_is "-f: it ends once the command runs" \
	"$(echo no | rsh -f n2 "wc -c >$SCRATCH/f.in; echo begun; until [ -e $SCRATCH/f.go ]; do sleep 0.1; done; echo over" >"$SCRATCH/f"; echo "$? $(grep -c over "$SCRATCH/f")")" "0 0"
: >"$SCRATCH/f.go"
tap_true "and the command goes on, its output where it went" until_true 10 grep -q over "$SCRATCH/f"
tap_is "without standard input" "$(cat "$SCRATCH/f.in")" 0
tap_is "-f: a command that did not start: 255" "$(fails rsh -f nowhere true)" 255
gone() { ! pgrep -f '^sleep 4711$' >/dev/null; }
tap_is "a command leaves a process in the background" "$(rsh n2 'nohup sleep 4711 >/dev/null 2>&1 </dev/null & echo left')" left
tap_true "it ends with the command, nohup or not" until_true 10 gone
stays=$(on n1 iocom run --detach --node n2 -- sleep 4712)
tap_like "run --detach: what is started so stays" "$(on n1 iocom jobs --json | jq -r --arg j "$stays" '.jobs[] | select(.job==$j).state')" '^(starting|running)$'
on n1 iocom kill "$stays"
tap_is "the job's class is its program's name" \
	"$(rsh n2 /bin/true ";" true; on n1 iocom jobs --all --json | jq -r '[.jobs[]?, .[]?] | map(objects | select(has("class"))) | .[0].class')" true

tap_is "-t: at a terminal" "$(rsh -t n2 'test -t 0 && hostname' </dev/null | tr -d '\r')" n2
tap_is "and without it at none" "$(rsh n2 'test -t 1 || hostname' </dev/null)" n2
tap_is "no command: a shell reads standard input" "$(echo 'hostname; exit 9' | rsh n2; echo $?)" $'n2\n9'

# --- what is refused: 255, like ssh, and a sentence ---
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
if command -v git >/dev/null; then
	git init -q --bare "$SCRATCH/repo.git"
	tap_is "git" "$(on n1 env GIT_SSH_COMMAND='iocom rsh' git ls-remote "n2:$SCRATCH/repo.git" 2>&1; echo $?)" 0
	tap_is "git: no such repository" "$(status on n1 env GIT_SSH_COMMAND='iocom rsh' git ls-remote "n2:$SCRATCH/none.git")" 128
else
	tap_skip "git" "not installed"
fi
if parallel --version 2>/dev/null | grep GNU >/dev/null; then
	tap_is "GNU parallel on two nodes" \
		"$(on n1 parallel --ssh 'iocom rsh' -S 2/n1,2/n2 --nice 0 'hostname; echo {}' ::: 1 2 3 4 2>/dev/null | grep -cE '^[1-4]$')" 4
else
	tap_skip "GNU parallel" "not installed (another program of that name may be)"
fi
tap_done
