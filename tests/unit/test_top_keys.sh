#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# The keys of `iocom top` in a real terminal (tmux): views, filter, selection, details; resizing
# down to a few cells; terminals without colour; an agent that ends and comes back.
# shellcheck disable=SC2154 # terminal.sh sets dir
set -uo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh disable=SC1091
. "$here/tests/lib/tap.sh"
build=${IOCOM_BUILD:-$here/build}
iocom=$build/iocom
[ -x "$build/tests/tools/topagent" ] || tap_skip_all "topagent is not built"
command -v tmux >/dev/null || tap_skip_all "tmux is not installed"
# shellcheck source=tests/lib/terminal.sh disable=SC1091
. "$here/tests/lib/terminal.sh"

TOPAGENT_LOSSY=1 play
open_screen 80 24
out=$(screen '\? help')
tap_like "columns of one kind have a title above them" "$out" '─explicit── fault ──network──'
tap_like "degraded columns are shown" "$out" '^DEGRADED local_bytes \(no such tracepoint\)'
tap_like "the disk: its service time" "$out" '^vda +80\.0%.*0\.80 ms'
press "the history grows" '^CPU +49\.9% +▄{3,} ' ''
press "t: a tree" '├─rsync' t
tap_like "with deeper levels" "$(screen '│ ├─cc1')" '│ ├─cc1'
press "t: no tree again" 'COMMAND +READ' t
press "/ filters while one types" '^Filter: POST_ +8 rows' / POST
tap_is "and only matching rows are left" "$(grep -cE '(rsync|cc1|nginx)' <<<"$(screen 'POST_')")" 0
press "backspace takes a letter back" '^Filter: POS_' BSpace
press "Enter keeps the filter" "filter 'POS'" Enter
press "Esc clears it" ' 1-[0-9]+/60$' Escape
press "a filter that nothing fits" 'nothing to show' / zzz
press "Esc while typing clears it" ' 1-[0-9]+/60$' Escape
press "i: only what is active" 'active only.* 1-[0-9]+/[0-9]+$' i
press "o: only I/O" 'active I/O only' o
tm send-keys i o
press "u: only my own" 'own only' u
press "Esc lifts it" ' 1-[0-9]+/60$' Escape
press "u and a filter" "filter 'POS'.*own only" u / POS Enter
press "Esc takes back the filter first" '(^|[^'"'"'] )own only' Escape
press "and then u" ' 1-[0-9]+/60$' Escape
press "c: command lines come last" 'SHARE% COMMAND' c
tm send-keys c
press "Down selects: its history above the foot" '^1017 rsync +cpu .*disk 45\.0M █+' Down
press "and moves on" '^1000 postgres +cpu 50\.0% █+' Down
press "Enter: all of it" '^postgres  pid 1000' Enter
out=$(screen 'Esc goes back')
tap_like "explicit and implicit apart" "$out" '^explicit read +40\.0M '
tap_like "counters without activity are 0" "$out" '^implicit by page faults +0 +0'
press "Esc: back to the table" '1000 postgres .*Enter: all|^1000 postgres' Escape
press "j: jobs" '^n1-42-1 +15 ' j
press "a tree of jobs has their tasks" '├─1017 rsync' t
tm send-keys t j
press "s: keys to sort by, chosen with arrows" '^ f read' s
tm send-keys Home
press "s f: by bytes read" 'share agent|read agent' s f
tap_like "the largest reader is the first" "$(screen 'read agent' | grep -A1 'PID USER' | tail -n 1)" '1000 root +postgres'
press "K: what counting costs" '^cost +[0-9.]+% of a core' K
press "Space pauses" 'PAUSED' Space
tm send-keys Space
press "Home, Enter: details of a job or task" 'Esc goes back' Home Enter
tm send-keys Escape

# Any size at any time: nothing wraps, no old text stays, the title row is there.
for size in "20 5" "40 12" "10 3" "1 1" "300 70" "79 23" "20 5"; do
	read -r w h <<<"$size"
	tm resize-window -x "$w" -y "$h"
	sleep 0.3
done
out=$(screen '^ +PID .*READ')
tap_like "20x5: titles" "$out" '^ +PID .*READ'
tap_is "20x5: the node, titles, two rows, the foot" "$(grep -c . <<<"$out")" 5
tap_is "20x5: the rows are whole" "$(grep -cE '^ +[0-9]+ +.*[0-9.]+[KMG]?$' <<<"$out")" 2
for key in '?' s Enter / t c j K; do
	tm send-keys "$key"
	sleep 0.1
	tm resize-window -x 7 -y 2
	sleep 0.1
	tm send-keys Escape
	tm resize-window -x 60 -y 17
	sleep 0.1
done
tap_like "and after all that it still answers" "$(screen 'q quit')" 'q quit'
tm send-keys C-c
out=$(screen 'left with 0')
tap_like "Ctrl-C leaves with 0" "$out" '^left with 0'
tap_like "and the terminal echoes again" "$(screen '^1$')" '^1$'
tm kill-server
stop

play 4 2
open_screen 80 24
screen '\? help' >/dev/null
out=$(screen 'went away')
tap_like "the head says that the agent went away" "$out" '^The agent went away [0-9]+s ago; asking again'
tap_like "its last reading stays" "$out" '1017 root +rsync'
out=$(screen "counting")
for _ in $(seq 100); do
	tm capture-pane -p >"$dir/screen"
	grep -q 'went away' "$dir/screen" || break
	sleep 0.1
done
tap_is "the message disappears when the agent is back" "$(grep -c 'went away' "$dir/screen")" 0
tap_like "with new readings" "$(cat "$dir/screen")" '1017 root +rsync'
tm send-keys q
tap_like "q leaves while the agent is gone, or after it" "$(screen 'left with')" 'left with 0'
tm kill-server
stop

# A locale without UTF-8: our own text is ASCII, and other characters become '?'.
play
open_screen 100 30 LC_ALL=C
tm send-keys t
out=$(screen '[|`]-rsync')
tap_like "LC_ALL=C: a tree of ASCII" "$out" '\|-rsync$'
tap_like "LC_ALL=C: histories of ASCII" "$(screen '@@@ ')" '^CPU +49.9% +=+ '
tap_is "LC_ALL=C: no other characters" "$(tm capture-pane -p | LC_ALL=C grep -c '[^ -~]')" 0
tm send-keys q
screen 'left with' >/dev/null
tm kill-server
stop

# Colours off: no colour sequence appears.
colours() { tm capture-pane -pe | grep -cE $'\e\\[[0-9;]*(3[1-7]|4[1-7]|9[0-7])m'; }
for how in "NO_COLOR=1 " "TERM=vt100 " " --no-color"; do
	play
	top=${how#* } open_screen 100 30 "${how% *}"
	out=$(screen '\? help')
	tap_is "${how// /}: no colour is sent" "$(colours)" 0
	case $how in
	TERM*) tap_like "TERM=vt100: histories in ASCII" "$(screen '@@@ ')" '^CPU +49.9% +=+ ' ;;
	esac
	tm send-keys q
	screen 'left with' >/dev/null
	tm kill-server
	stop
done
play
open_screen 100 30 TERM=screen-256color
screen '\? help' >/dev/null
tap_isnt "otherwise there is colour" "$(colours)" 0
tm send-keys q
screen 'left with' >/dev/null
tm kill-server
stop

play
out=$(timeout 60 "$iocom" top --run-dir "$dir" -b -n 1 -d 0.2 --tree --filter cc1)
tap_like "-b --tree --filter: the match" "$out" 'cc1$'
tap_like "with its ancestors" "$out" ' postgres$'
stop
play
timeout 60 "$iocom" top --run-dir "$dir" --json -n 1 -d 0.2 --filter postgres --io >"$dir/out"
tap_is "--json --filter: only matching rows" \
	"$(python3 -c 'import json,sys; print({t["comm"] for t in json.load(open(sys.argv[1]))["tasks"]})' "$dir/out")" "{'postgres'}"
stop
play 2
timeout 60 "$iocom" top --run-dir "$dir" -b -d 0.2 >"$dir/out" 2>"$dir/err"
tap_is "-b does not wait for an agent that went away" "$?" 1
tap_like "and says so" "$(cat "$dir/err")" 'the agent went away'
stop
tap_done
