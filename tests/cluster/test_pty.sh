#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Jobs at a terminal, with the test's own agent for this machine: editors and pagers, the keys of
# a terminal, its size, the escape, and modes that are restored on every way out.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
# shellcheck source=tests/lib/agent.sh
. tests/lib/agent.sh
# shellcheck source=tests/lib/screen.sh
. tests/lib/screen.sh
command -v tmux >/dev/null || tap_skip_all "no tmux"
at_end() { screen_cleanup; }
u=$$ # marks the processes of this run
export LC_ALL=C.UTF-8 TERM=xterm
agent_up pty

# --- without a terminal here ---
pty() { timeout 20 "$iocom" run --pty "$@"; }
plain() { tr -d '\r'; }
tap_is "no terminal here: one of 24 lines there, and no raw mode" \
	"$(pty -- sh -c 'test -t 0 && stty size' </dev/null 2>"$dir/err" | plain; cat "$dir/err")" "24 80"
tap_is "its exit status" "$(pty -- sh -c 'exit 7' </dev/null; echo $?)" 7
tap_is "a command that is not there: 127" "$(pty --node p1 -- no-such-command 2>/dev/null </dev/null; echo $?)" 127
tap_is "one stream: errors come as output" "$(pty -- sh -c 'echo e >&2' </dev/null 2>/dev/null | plain)" e
tap_is "without --pty they do not" "$("$iocom" run -- sh -c 'echo e >&2' </dev/null 2>/dev/null)" ""
tap_is "the end of a pipe is the terminal's end of file" \
	"$(printf 'one\ntwo' | pty -- sh -c "cat >$dir/cat; exit 3" >/dev/null; echo "$?"; cat "$dir/cat")" $'3\none\ntwo'
tap_is "... also to a shell that takes the first one for a key" \
	"$(for _ in 1 2 3; do printf 'echo $((20+1))\nsleep 0.3\n' | pty -- bash --norc -i >"$dir/out"; echo "$? $(grep -c 21 "$dir/out")"; done)" \
	$'0 1\n0 1\n0 1'
tap_is "... and to one command after another" "$(printf 'x\n' | pty -- sh -c 'cat >/dev/null; cat; exit 4' >/dev/null; echo $?)" 4
tap_is "... and while it waits to be read it is not typed again" \
	"$(pty -- sh -c 'sleep 2; stty -icanon min 0 time 0; dd 2>/dev/null | wc -c' </dev/null | plain)" 1
"$iocom" run --pty -- bash --norc -c "trap : TERM; echo trapped; while :; do sleep 0.1; done" </dev/null >"$dir/out" 2>"$dir/err" &
client=$!
until_true 10 grep -q trapped "$dir/out"
kill -TERM $client
wait $client
tap_like "one TERM that has no effect: it is hung up a while later" "$? $(cat "$dir/err")" '^255 .*left; the job.s terminal was hung up'
tap_is "closed standard input is its end too" "$(pty -- sh -c 'cat; exit 3' <&-; echo $?)" 3
tap_is "a reader that leaves hangs it up" "$(pty -- yes </dev/null | head -n 1 | plain; echo "${PIPESTATUS[0]}")" $'y\n129'
tap_is "--env none: the terminal's kind goes along" "$(pty --env none -- /bin/sh -c 'echo $TERM' </dev/null | plain)" xterm
tap_is "a user's terminal is the user's, and nobody's to read" \
	"$(runuser -u nobody -- "$iocom" run --pty -- sh -c 'stat -c "%U %G %a" $(tty)' </dev/null 2>&1 | plain)" "nobody tty 620"
tap_is "--escape with two characters: 125" "$(pty --escape ab -- true 2>"$dir/err" </dev/null; echo $?)" 125
tap_like "the sentence says what it takes" "$(cat "$dir/err")" "one character.*none.*'ab'"

# --- iocom rsh ---
rsh() { timeout 20 "$iocom" rsh "$@"; }
tap_is "rsh without a command: a shell reads standard input, without a terminal" \
	"$(echo 'test -t 0 || echo none; exit 4' | rsh p1; echo $?)" $'none\n4'
tap_is "rsh -t: a command at a terminal" "$(rsh -t p1 'test -t 1 && echo one' </dev/null | plain)" one
tap_is "and without -t at none" "$(rsh p1 'test -t 1 || echo none' </dev/null)" none
tap_is "rsh -e with two characters: 255" "$(rsh -e ab p1 true 2>/dev/null </dev/null; echo $?)" 255

# --- screens ---
press() { # DESCRIPTION REGEX KEY...
	local what=$1 regex=$2
	shift 2
	tm send-keys "$@"
	tap_like "$what" "$(screen "$regex")" "$regex"
}
# Opens a terminal on which COMMAND runs; then it prints the status, and whether its modes are as
# before.
open_screen() { # COMMAND...
	server=$((server + 1))
	printf '%s\n' 'before=$(stty -g)' "$*" \
		'printf "\nleft with $?\n"; [ "$(stty -g)" = "$before" ] && echo modes are back' \
		'sleep 60' >"$dir/window.$server"
	tm new-session -d -x 80 -y 24 "bash --norc $dir/window.$server"
}
is_raw() { stty -a -F "$(tm display-message -p '#{pane_tty}')" | grep -qE -- '-isig'; }
is_cooked() { stty -a -F "$(tm display-message -p '#{pane_tty}')" | grep -qE -- '(^| )isig'; }
left() { # DESCRIPTION STATUS: it left so, and the terminal is as it was
	tap_is "$1" "$(screen 'modes are back' | grep -E '^(left with|modes)')" "left with $2"$'\n'"modes are back"
	tm kill-server
}
# The client, not the programs that started it.
client() { pgrep -f "^$iocom (run|rsh) .*$1"; }
attacher() { pgrep -f "^$iocom attach .*$job"; }
in_foreground() { [[ $(ps -o stat= -p "$(pgrep -f "$1")") == *+* ]]; }
gone() { ! pgrep -f -- "$1"; }

if command -v vim >/dev/null || command -v vi >/dev/null; then
	open_screen "$iocom run --pty -- $(command -v vim || command -v vi) $dir/text"
	screen '^~' >/dev/null
	tm send-keys i 'typed here' Enter 'ümlaut' Escape
	tap_like "an editor draws" "$(screen '^ümlaut')" '^typed here$'
	tm send-keys ':wq' Enter
	left "and leaves" 0
	tap_is "what was typed is in the file" "$(cat "$dir/text")" $'typed here\nümlaut'
else
	tap_skip "an editor" "no vi"
fi
if command -v top >/dev/null; then
	open_screen "$iocom run --pty -- top -d 0.3"
	tap_like "top draws" "$(screen 'PID +USER')" 'PID +USER'
	tm send-keys q
	left "q leaves it" 0
else
	tap_skip "top" "not installed"
fi
if command -v less >/dev/null; then
	seq 1 500 >"$dir/lines"
	open_screen "$iocom run --pty -- less $dir/lines"
	tap_like "a pager shows the first page" "$(screen '^23$')" '^1$'
	press "and the last" '^500$' G
	tm send-keys q
	left "q leaves it" 0
else
	tap_skip "a pager" "no less"
fi

open_screen "$iocom run --pty -- sleep ${u}71"
until_true 10 is_raw
tap_true "the terminal is raw while the job runs" is_raw
tm send-keys C-c
left "^C: 130" 130
open_screen "$iocom run --pty -- sleep ${u}72"
until_true 10 is_raw
tm send-keys 'C-\'
left "^\\: 131" 131
open_screen "$iocom run -- sleep ${u}73"
until_true 10 pgrep -f "^sleep ${u}73"
tap_true "without --pty the terminal stays as it is" is_cooked
tm send-keys C-c
left "and ^C is this program's signal: 130 too" 130

# A shell with job control there, and one here.
server=$((server + 1))
tm new-session -d -x 90 -y 30 "PS1='here> ' HOME=$dir bash --norc"
screen '^here>' >/dev/null
tm send-keys 'stty erase ^H' Enter
tm send-keys "$iocom run --pty -- bash --norc" Enter
until_true 10 is_raw
tm send-keys "PS1='there> '" Enter
tap_like "a shell prompts" "$(screen '^there>')" '^there>'
press "its terminal has our keys" 'erase = \^H' 'stty -a' Enter
press "its terminal has our size" '^30 90$' 'stty size' Enter
tm resize-window -x 101 -y 33
press "and the new one at once" '^33 101$' 'stty size' Enter
tm send-keys "sleep ${u}74" Enter
until_true 10 pgrep -f "^sleep ${u}74"
press "^Z stops a command of it" "Stopped +sleep ${u}74" C-z
tm send-keys 'fg' Enter
until_true 10 in_foreground "^sleep ${u}74"
tm send-keys C-c 'echo was=$?' Enter
tap_like "fg continues it, ^C ends it" "$(screen '^was=130')" '^was=130$'
press "~? tells the escapes" '^  \^Z +stop this program here' Enter '~?'
press "~^Z stops the client" '^\[1\]\+  Stopped' Enter '~' C-z
tap_like "and the prompt is ours" "$(screen '^here>$')" '^here>$'
tap_true "the terminal is as it was" is_cooked
tm send-keys 'fg' Enter
until_true 10 is_raw
press "fg goes on with it" '^still-there$' 'echo still-''there' Enter
press "~~ is one ~" '^~x$' 'cat' Enter '~~x' Enter
tm send-keys C-d
tm send-keys 'exit 12' Enter
screen '^here>$' >/dev/null
press "exit, and its status" '^status=12$' 'echo status=$?' Enter
tm send-keys "$iocom run --pty -- sh -c 'echo from-\"\"there; read x; echo got=\$x' &" Enter
tap_like "from the background it may write" "$(screen 'from-there$')" 'from-there$'
tap_true "and leaves the terminal alone" is_cooked
tm send-keys fg Enter
until_true 10 is_raw
press "in the foreground it reads" '^got=word$' 'word' Enter
until_true 10 is_cooked
tap_true "and the terminal is as it was" is_cooked
tm kill-server

# --- every way out leaves the terminal as it was ---
open_screen "$iocom rsh -t p1 'sleep ${u}75'"
until_true 10 is_raw
kill -TERM "$(client ${u}75)"
left "TERM is the command's: 143" 143
open_screen "$iocom run --pty -- bash --norc -c 'trap : TERM; echo trapped; while :; do sleep 0.1; done; : ${u}76'"
screen '^trapped' >/dev/null
until_true 10 is_raw
kill -TERM "$(client ${u}76)"
sleep 0.3
tap_true "one that ignores TERM goes on" is_raw
kill -TERM "$(client ${u}76)"
left "a second TERM leaves it: 255" 255
tap_true "and its terminal was hung up" until_true 5 gone "^bash .*${u}76"
for signal in HUP:255 INT:130 QUIT:131; do
	open_screen "$iocom run --pty -- sleep ${u}77"
	until_true 10 is_raw
	kill -"${signal%:*}" "$(client ${u}77)"
	left "${signal%:*}: ${signal#*:}" "${signal#*:}"
	tap_true "and nothing is left" until_true 5 gone "^sleep ${u}77"
done
open_screen "$iocom run --pty -- sleep ${u}78"
until_true 10 is_raw
tm send-keys Enter '~.'
left "~. leaves: 255" 255
tap_true "and hangs up" until_true 5 gone "^sleep ${u}78"
# A program that has taken the screen: what it set is undone, whichever way one leaves.
screen_modes() {
	tm display-message -p 'alternate=#{alternate_on} cursor=#{cursor_flag} mouse=#{mouse_any_flag} keypad=#{keypad_flag}'
}
taken='alternate=1 cursor=0 mouse=1 keypad=1' free='alternate=0 cursor=1 mouse=0 keypad=0'
modes_are() { [ "$(screen_modes)" = "$1" ]; }
cat >"$dir/fullscreen" <<'D'
printf '\033[?1049h\033[?1002;1006h\033[?25l\033=\033[?2004h\033[1;44mfull screen\r\n'
sleep "$1"
D
open_screen "$iocom run --pty -- sh $dir/fullscreen ${u}91"
screen '^full screen' >/dev/null
tap_is "a program takes the screen" "$(screen_modes)" "$taken"
tm send-keys Enter '~.'
screen 'modes are back' >/dev/null
tap_is "~. from it: the screen, the cursor and the mouse are ours" "$(screen_modes)" "$free"
left "with the status of one that left: 255" 255
open_screen "$iocom run --pty -- sh $dir/fullscreen ${u}93"
screen '^full screen' >/dev/null
pkill -KILL -f "^sh $dir/fullscreen ${u}93"
screen 'modes are back' >/dev/null
tap_is "the program is killed: the same" "$(screen_modes)" "$free"
left "and its status" 137
open_screen "$iocom run --pty -- sh $dir/fullscreen ${u}94"
screen '^full screen' >/dev/null
kill -HUP "$(client "fullscreen ${u}94")"
screen 'modes are back' >/dev/null
tap_is "this program is hung up: the same" "$(screen_modes)" "$free"
tm kill-server
server=$((server + 1))
tm new-session -d -x 80 -y 24 "PS1='here> ' HOME=$dir bash --norc"
screen '^here>' >/dev/null
tm send-keys "$iocom run --pty -- sh $dir/fullscreen ${u}95" Enter
screen '^full screen' >/dev/null
tm send-keys Enter '~' C-z
tap_true "~^Z: the prompt is on our screen" until_true 10 modes_are "$free"
screen 'Stopped' >/dev/null
tm send-keys 'fg' Enter
tap_true "fg: the program has it again" until_true 10 modes_are "$taken"
tm send-keys Enter '~.'
tap_true "and leaves it" until_true 10 modes_are "$free"
tm kill-server
job=$("$iocom" run --pty --detach -- sh "$dir/fullscreen" ${u}96 </dev/null)
open_screen "$iocom attach $job"
screen '^full screen' >/dev/null
tm send-keys Enter '~.'
screen 'modes are back' >/dev/null
tap_is "~. from attach: the same" "$(screen_modes)" "$free"
left "and its status" 0
tap_like "and the program goes on" "$("$iocom" jobs)" "^$job +running"
"$iocom" kill -KILL "$job" >/dev/null
open_screen "$iocom run --pty --escape none -- sh -c 'read x; read y; echo got=\$y; exit 5'"
until_true 10 is_raw
tm send-keys Enter '~.' Enter
left "--escape none: ~. is the command's" 5

# --- detached, with a terminal: like tmux ---
cat >"$dir/detached" <<'D'
echo begun
(trap 'echo "size=$(stty size </dev/tty)"' WINCH; while :; do sleep 0.1; done) &
while read -r x; do
	echo "got=$x"
	[ "$x" != stop ] || { kill -KILL $!; exit 4; }
done
D
job=$("$iocom" run --pty --detach -- bash --norc "$dir/detached" </dev/null)
tap_like "run --pty --detach prints the job's name" "$job" '^p1-'
open_screen "$iocom attach $job"
tap_like "attach shows what it showed" "$(screen '^begun')" '^begun'
until_true 10 is_raw
tap_true "its terminal here is raw" is_raw
tap_like "and it is told to draw again, at our size" "$(screen '^size=24 80')" '^size=24 80'
press "keys go there" '^got=one' one Enter
tm resize-window -x 90 -y 30
tap_like "a new size goes there" "$(screen '^size=30 90')" '^size=30 90'
press "~? tells what the escape does" 'leave and let the command go on' Enter '~?'
tm send-keys Enter '~.'
left "~. leaves it: 0" 0
tap_like "and the job goes on" "$("$iocom" jobs)" "^$job +running"
for signal in TERM:143 HUP:129 INT:130; do
	open_screen "$iocom attach --escape ^B $job"
	until_true 10 is_raw
	kill -"${signal%:*}" "$(attacher)"
	left "${signal%:*} ends who looks: ${signal#*:}" "${signal#*:}"
done
tap_like "it goes on" "$("$iocom" jobs)" "^$job +running"
echo two | "$iocom" attach --from 0 "$job" >"$dir/eof" 2>/dev/null &
eof=$!
tap_true "a line from a file goes there" until_true 10 grep -q '^got=two' "$dir/eof"
tap_true "its end is not its terminal's" kill -0 $eof
tap_like "and the job goes on" "$("$iocom" jobs)" "^$job +running"
kill $eof
wait $eof
open_screen "$iocom attach $job"
until_true 10 is_raw
tm send-keys stop Enter
left "its end is ours: its status" 4
tap_like "attach after the end: all that it showed" "$(timeout 10 "$iocom" attach "$job" </dev/null | plain | tr '\n' ' ')" 'got=one.*got=two.*got=stop'
if command -v vim >/dev/null || command -v vi >/dev/null; then
	job=$("$iocom" run --pty --detach -- "$(command -v vim || command -v vi)" "$dir/later" </dev/null)
	open_screen "$iocom attach $job"
	screen '^~' >/dev/null
	tm send-keys i 'typed at first' Escape
	screen '^typed at first' >/dev/null
	kill -TERM "$(attacher)"
	screen 'modes are back' >/dev/null
	tm kill-server
	open_screen "$iocom attach $job"
	tap_like "an editor draws again for who comes later" "$(screen '^typed at first')" '^typed at first'
	tm send-keys ':wq' Enter
	left "and leaves" 0
	tap_is "what was typed is in the file" "$(cat "$dir/later")" 'typed at first'
fi
open_screen "$iocom run --pty -- bash --norc -c 'read -r x; echo got=\$x; sleep 0.5; exit 6 # ${u}83'"
until_true 10 is_raw
running() { "$iocom" jobs | grep -E '^p1-.* running '; }
until_true 10 running # the agent reports it a moment later
job=$(running | head -n 1 | cut -d ' ' -f 1)
first=$server
tap_like "a terminal that somebody has is not taken unasked" "$(timeout 10 "$iocom" attach "$job" 2>&1 </dev/null; echo $?)" \
	"--take takes it from there"$'\n'125
open_screen "$iocom attach --take $job"
until_true 10 is_raw
tm send-keys taken Enter
tap_like "with --take it changes over" "$(screen '^got=taken')" '^got=taken'
left "with its status" 6
server=$first
left "and who had it is told, its terminal restored: 255" 255
server=$((first + 1))
open_screen "$iocom attach none-such"
left "attach to a job that is not: 125, the terminal as it was" 125
tap_is "--escape with two characters: 125" "$("$iocom" attach --escape ab x 2>/dev/null; echo $?)" 125

open_screen "$iocom run --pty -- sleep ${u}79"
until_true 10 is_raw
kill -KILL "$(client "pty -- sleep ${u}79")"
tm kill-server
tap_true "a client that is killed: the job is there in its grace" pgrep -f "^sleep ${u}79"
pkill -KILL -f "^sleep ${u}79"
open_screen "$iocom run --pty --grace 0.2 -- sh -c 'trap \"echo saved >$dir/saved; exit\" HUP; echo trapped; : ${u}80; while :; do sleep 0.1; done'"
screen '^trapped' >/dev/null
until_true 10 is_raw
kill -KILL "$(client ${u}80)"
tm kill-server
tap_true "then its terminal hangs up, and it can save" until_true 10 grep saved "$dir/saved"

open_screen "$iocom run --pty --grace 1 -- sleep ${u}81"
until_true 10 is_raw
kill -KILL "$agent"
wait "$agent" 2>/dev/null
sleep 0.3
tap_true "the agent is killed: the job and the terminal go on" is_raw
shim=$(ps -o ppid= -p "$(pgrep -f "^sleep ${u}81")" | tr -d ' ')
kill -KILL "$shim"
left "its supervisor too: 255" 255
tap_true "and the hang-up took the job" until_true 5 gone "^sleep ${u}81"
tap_done
