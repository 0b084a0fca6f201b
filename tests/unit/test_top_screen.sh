#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# `iocom top` as a person and a script see it, with an agent that plays made-up numbers: the
# screen in a real terminal (tmux) at two sizes, -b, --json, bad input.
set -uo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh disable=SC1091
. "$here/tests/lib/tap.sh"
build=${IOCOM_BUILD:-$here/build}
iocom=$build/iocom
[ -x "$build/tests/tools/topagent" ] || tap_skip_all "topagent is not built"

# shellcheck source=tests/lib/terminal.sh disable=SC1091
. "$here/tests/lib/terminal.sh"

if command -v tmux >/dev/null; then
	TOPAGENT_LOSSY=1 play
	open_screen 80 24
	out=$(screen '\? help')
	tap_like "80x24: the head names the node" "$out" '^testnode .*60 tasks'
	tap_like "80x24: losses are shown" "$out" '^LOST +task_storage 12'
	tap_like "80x24: the columns that fit" "$out" \
		'^ +PID USER +COMMAND +READ +WRITE +IMPL +SENT +RECV +CPU% +RSS +SHARE%$'
	tap_like "80x24: the heaviest first" "$(grep -A1 'PID USER' <<<"$out" | tail -n 1)" 'rsync.*45\.0M.* 2[23] disk'
	tap_like "80x24: the keys at the foot" "$(tail -n 1 <<<"$out")" 'q quit.*\? help.*share agent 1-[0-9]+/60'
	tap_is "no escape sequence of a task's name reaches the terminal" "$(grep -c 'e?\[2Jvil' <<<"$out" | sed 's/[1-9].*/some/')" some
	tm send-keys p
	tap_like "p pauses" "$(screen PAUSED | tail -n 1)" 'PAUSED'
	tm send-keys p NPage
	tap_like "PgDn scrolls" "$(screen ' 1[0-9]-[0-9]+/60' | tail -n 1)" ' 1[0-9]-[0-9]+/60'
	tm send-keys s a
	tap_like "s a sorts by pid" "$(screen '^ +1017 ' | grep -A2 'PID USER' | tr '\n' ' ')" 'SHARE% +1000 .* 1017 '
	tm send-keys r
	tap_like "r reverses the order" "$(screen '^ +2003 ' | grep -A1 'PID USER' | tail -n 1)" '^ +2003 '
	tm send-keys j
	tap_like "j shows jobs" "$(screen 'TASKS')" '^n1-42-1 +15 '
	tm send-keys '?'
	tap_like "? explains" "$(screen 'Press a key')" 'powers of 1000'
	tm send-keys x
	tm resize-window -x 200 -y 60
	tap_like "200x60 after a resize: every column" "$(screen 'LOCAL/s')" \
		'JOB +TASKS +IO/s +READ/s +WRITE/s +IMPL/s +FAULT/s +SENT/s +RECV/s +LOCAL/s +MSG/s +CPU% +RSS +SHARE% PAST'
	tm send-keys q
	tap_like "q leaves with 0" "$(screen 'left with')" 'left with 0'
	tm kill-server
	stop

	play 3
	top=--no-wait open_screen 200 60 NO_COLOR=1
	out=$(screen 'left with')
	tap_like "--no-wait: an agent that dies ends the screen with a sentence" "$out" 'iocom top: the agent went away'
	tap_like "and with 1" "$out" 'left with 1'
	tm kill-server
	stop

	play
	open_screen 200 60 NO_COLOR=1
	screen '\? help' >/dev/null
	tap_is "NO_COLOR: no colour is sent" "$(tm capture-pane -pe | grep -cE $'\e\\[[0-9;]*(3[1-6]|4[1-6])m')" 0
	tm send-keys q
	screen 'left with' >/dev/null
	tm kill-server
	stop

	play
	# The leak checker of a sanitized build may hold the process when the hang-up comes.
	open_screen 80 24 ASAN_OPTIONS=detect_leaks=0
	screen '\? help' >/dev/null
	pid=$(pgrep -f "^$iocom top --run-dir $dir")
	tm kill-server
	for _ in $(seq 50); do
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.1
	done
	if [ -n "$pid" ] && ! kill -0 "$pid" 2>/dev/null; then
		tap_ok "a terminal that hangs up ends it"
	else
		tap_fail "a terminal that hangs up ends it" "process '$pid'"
	fi
	[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null
	stop

	open_screen 80 24 TERM=dumb
	tap_like "a terminal without a screen: use -b" "$(screen 'left with')" 'use -b'
	tm kill-server
else
	tap_skip "the screen" "tmux is not installed"
fi

play
timeout 60 "$iocom" top --run-dir "$dir" --json -n 3 -d 0.2 >"$dir/out" 2>"$dir/err"
tap_is "--json -n 3: exits with 0" "$?" 0
stop
check='
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert len(lines) == 3, len(lines)
top = ["time_ns", "since_ns", "node", "tasks", "jobs", "disks", "unattributed", "drops", "cost"]
names = """explicit_read_bytes explicit_write_bytes explicit_ops implicit_bytes implicit_ops
    major_faults minor_faults sent_bytes received_bytes sent_messages received_messages
    local_bytes cpu_ms""".split()
for d in lines:
    assert all(k in d for k in top), d.keys()
    shares = [t["share"] for t in d["tasks"]]
    assert shares == sorted(shares, reverse=True)
    for t in d["tasks"] + d["jobs"]:
        assert "job" in t and "rss_bytes" in t
        assert all(n in t and n + "_per_s" in t for n in names), t
    for t in d["tasks"]:
        assert t.get("exited", True) is True and "pid" in t and "comm" in t and "uid" in t
    assert all("stacked_bytes" in k and "residual_bytes" in k for k in d["disks"])
assert sum("exited" in t for d in lines for t in d["tasks"]) == 1
assert lines[1]["time_ns"] - lines[0]["time_ns"] > 1.5e8
'
tap_true "--json: three whole documents" python3 -c "$check" "$dir/out"

play
out=$(timeout 60 "$iocom" top --run-dir "$dir" -b -n 1 -d 0.2 --sort rss -u nobody)
tap_like "-b --sort rss -u nobody: the user's largest task first" "$(sed -n '/PID/{n;p}' <<<"$out")" '^ +2003 nobody '
tap_is "-b: no other user's tasks" "$(grep -c ' root ' <<<"$out")" 0
stop

play
timeout 60 "$iocom" top --run-dir "$dir" --json -n 5 -d 0.1 >/dev/full 2>"$dir/err"
tap_is "a full disk under the output: 1" "$?" 1
tap_like "and a sentence" "$(cat "$dir/err")" 'cannot write the output: No space left'
stop

for bad in "-d 0.01" "-d x" "-n 0" "-n -1" "--sort weight" "-u no-such-user-here" "--wrong" "word"; do
	# shellcheck disable=SC2086 # two words
	timeout 60 "$iocom" top -b $bad >"$dir/out" 2>"$dir/err"
	tap_is "usage: $bad" "$? $(wc -c <"$dir/out")" "2 0"
done
timeout 60 "$iocom" top --run-dir "$dir" </dev/null >"$dir/out" 2>"$dir/err"
tap_like "no terminal: $?, use -b" "$(cat "$dir/err")" 'use -b'
if [ "$(id -u)" -eq 0 ]; then
	as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
else
	as_user=()
fi
chmod 755 "$dir"
if [ -z "$("${as_user[@]}" test -x "$iocom" && echo yes)" ]; then
	tap_skip "an ordinary user without an agent" "he cannot reach $build"
else
	timeout 60 "${as_user[@]}" "$iocom" top -b -n 1 --run-dir "$dir/none" >"$dir/out" 2>"$dir/err"
	tap_is "an ordinary user without an agent: 1" "$?" 1
	tap_like "and what to do" "$(cat "$dir/err")" 'start iocomd.*sudo iocom top'
	timeout 60 "${as_user[@]}" "$iocom" top -b -n 1 --direct >"$dir/out" 2>"$dir/err"
	tap_like "--direct needs root: $?" "$(cat "$dir/err")" 'needs root'
fi
tap_done
