#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# `iocom batch` with workers on this machine: each command runs once, its output stays together,
# its status is reported; and what happens to commands when a worker is lost.
set -uo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh disable=SC1091
. "$here/tests/lib/tap.sh"
dir=$(mktemp -d /tmp/iocom-batch-XXXXXX)
trap 'rm -rf "$dir"' EXIT
export IOCOM_RUN_DIR=$dir/none
iocom=${IOCOM_BUILD:-$here/build}/iocom
batch() { timeout 150 "$iocom" batch --here "$@"; }
status() { "$@" >"$dir/out" 2>"$dir/err"; echo $?; }
lines() { printf '%s\n' "$@" >"$dir/commands"; }
running() { ps -eo args | grep -c "^sleep $1\.$$\$"; } # SECONDS; only ours

# --- what runs ---
seq 500 | sed "s|.*|mkdir $dir/once-&|" >"$dir/commands"
tap_is "500 commands, 4 at a time: all succeed" "$(status batch -j 4 "$dir/commands")" 0
tap_is "each ran exactly once: a second mkdir would fail" "$(find "$dir" -name 'once-*' | wc -l)" 500
tap_is "commands come from standard input, the last line without a newline" \
	"$(printf '# one\n\n  echo a\n\techo b' | batch -j 1)" $'a\nb'
lines 'echo "a  b"' 'echo a  b' 'X=1; echo $X' 'exec echo $((1+2))'
tap_is "a command that needs a shell gets one" "$(batch -j 1 "$dir/commands")" $'a  b\na b\n1\n3'
lines 'cat; echo end'
tap_is "their standard input is empty" "$(echo no | batch -j 1 "$dir/commands")" end
lines 'for i in 1 2 3; do echo a$i; sleep 0.05; done' 'for i in 1 2 3; do echo b$i; sleep 0.05; done'
tap_is "one command's output stays together" "$(batch -j 2 "$dir/commands" | tr -d 0-9 | uniq | wc -l)" 2
lines 'head -c 3000000 /dev/zero' 'head -c 3000000 /dev/zero'
tap_is "a large output is complete" "$(batch -j 2 "$dir/commands" | wc -c)" 6000000
{ seq 40 | sed 's/.*/true/'; echo 'sleep 2'; seq 20 | sed 's/.*/true/'; } >"$dir/commands"
batch -j 2 --log "$dir/log" "$dir/commands"
tap_is "commands behind a long one go to another worker: the long one ends last" \
	"$(wc -l <"$dir/log") $(tail -n 1 "$dir/log" | jq .sequence)" "61 41"
lines 'echo out' 'echo err >&2'
tap_is "standard error stays together" "$(batch -j 1 "$dir/commands" 2>/dev/null)" out
seq 3 | sed 's/.*/yes & | head -n 200000/' >"$dir/commands"
tap_is "a large output of one command stays together, too" "$(batch -j 3 "$dir/commands" | uniq | wc -l)" 3
tap_is "output waits in a file; without a place for one: 255" \
	"$(TMPDIR=$dir/no status batch -j 3 "$dir/commands")" 255
tap_like "why" "$(cat "$dir/err")" "cannot make a file for a command's output .*No such file"
tap_is "one command at a time needs no file" "$(TMPDIR=$dir/no batch -j 1 "$dir/commands" | uniq | wc -l)" 3
for i in 6 1 4 2 5 3; do echo "sleep 0.$i; echo $i"; done >"$dir/commands"
tap_is "outputs come as the commands end" "$(batch -j 6 "$dir/commands" | head -n 1)" 1
tap_is "-k: outputs come in the order of the list; options may follow the file" "$(batch "$dir/commands" -j 6 -k | tr -d '\n')" 614253
{ echo 'sleep 0.5; yes 0 | head -n 100000'; seq 9 | sed 's/.*/yes & | head -n 100000/'; } >"$dir/commands"
tap_is "-k: and outputs are complete" "$(batch -j 3 -k "$dir/commands" | uniq -c | tr -s ' \n' ' ')" \
	" $(seq 0 9 | sed 's/^/100000 /' | tr '\n' ' ')"
{ echo 'sleep 0.5'; seq 500 | sed 's/^/echo /'; } >"$dir/commands"
tap_is "-k: many outputs can wait for a long command" \
	"$(batch -j 2 -k "$dir/commands" | cmp - <(seq 500) && echo same)" same

tap_is "a log that is there: 125, and it stays" \
	"$(status batch --log "$dir/log" "$dir/commands") $(wc -l <"$dir/log") $(cat "$dir/err")" \
	"125 61 iocom batch: $dir/log is there already; --force replaces it"
tap_is "--force is for a new list and a log" \
	"$(status batch --force "$dir/commands") $(status batch --force --resume --log "$dir/log" "$dir/commands")" "125 125"

# --- their statuses ---
lines true 'exit 3' false 'kill -TERM $$' no-such-command 'echo fine'
tap_is "the exit status is the number of failed commands" "$(status batch -j 2 --force --log "$dir/log" "$dir/commands")" 4
tap_is "the log has each command with its status" \
	"$(jq -r '"\(.sequence) \(.state) \(.status)"' "$dir/log" | sort | tr '\n' ' ')" \
	"1 ended 0 2 ended 3 3 ended 1 4 ended 143 5 ended 127 6 ended 0 "
tap_like "a command that cannot be started is reported" "$(cat "$dir/err")" '^iocom batch: no-such-command: command not found$'
# A directory of PATH that another user may not enter: root can enter it, so the test becomes
# another user.
mkdir "$dir/shut" "$dir/plain"
chmod 0 "$dir/shut"
echo x >"$dir/plain/plain-file"
cp "$iocom" "$dir/iocom" # that user may not reach the build
chmod 755 "$dir" "$dir/plain" "$dir/iocom"
: >"$dir/log"
chmod 666 "$dir/log"
who=()
[ "$(id -u)" -ne 0 ] || who=(setpriv --reuid 65534 --clear-groups)
lines no-such-command plain-file /etc/passwd /no/such/command /etc true
{ PATH=$dir/shut:$dir/plain:$PATH timeout 30 "${who[@]}" "$dir/iocom" batch --here -q -j 1 --force --log "$dir/log" <"$dir/commands"; } 2>"$dir/err"
tap_is "a command not found, or not executable, has the same status as in iocom run" \
	"$(jq -r '"\(.command) \(.status)"' "$dir/log" | tr '\n' ' ')" \
	"no-such-command 127 plain-file 126 /etc/passwd 126 /no/such/command 127 /etc 126 true 0 "
tap_is "and the same sentence" "$(sed 's/^iocom batch: //' "$dir/err" | tr '\n' ';')" \
	"no-such-command: command not found;plain-file: Permission denied;/etc/passwd: Permission denied;/no/such/command: No such file or directory;/etc: Is a directory;"
seq 150 | sed 's/.*/false/' >"$dir/commands"
tap_is "more than 100 failures: 101" "$(status batch -j 2 "$dir/commands")" 101
tap_is "no commands: nothing to do" "$(status batch </dev/null)" 0

printf 'true \\377\\n' >"$dir/commands"
tap_is "a name that is not UTF-8 has its line" \
	"$(status batch --force --log "$dir/log" "$dir/commands") $(jq -r .status "$dir/log")" "0 0"

# --- the summary ---
lines true 'exit 3' true
batch -j 1 "$dir/commands" 2>"$dir/err"
tap_like "one failed: a summary" "$(cat "$dir/err")" '^iocom batch: 2 done, 1 failed, 0 lost, [0-9.]+ s, [0-9]+ a second$'
tap_is "-q: no summary" "$(batch -q -j 1 "$dir/commands" 2>&1)" ""
lines true
tap_is "all succeed: no summary" "$(batch -j 1 "$dir/commands" 2>&1)" ""
tap_like "-v: a summary" "$(batch -v -j 1 "$dir/commands" 2>&1)" '^iocom batch: 1 done, 0 failed'
terminal() { script -qec "$iocom batch --here $* $dir/commands" /dev/null | tr '\r' '\n'; }
tap_like "a terminal gets a summary" "$(terminal)" '^iocom batch: 1 done'
lines 'sleep 1.7' true
tap_like "and progress" "$(terminal -j 1)" '^0 done, 0 failed, 0 lost, 1 begun, 0 a second, [0-9]+ % of the list'
tap_is "-q: neither" "$(terminal -q -j 1)" ""
lines 'sleep 1.5; echo one' 'sleep 0.1; echo two' 'sleep 0.1; printf half' 'sleep 0.1; echo "; whole"' 'sleep 0.1; echo end'
raw() { script -qec "$iocom batch --here -j 1 $dir/commands $*" /dev/null | tr -d '\r' | sed 's/\x1b\[K/<clear>/g'; }
raw >"$dir/out"
tap_is "a command's output replaces the progress line, which returns at once" \
	"$(grep -oE '^[124] done|<clear><clear>[^<]*$' "$dir/out" | tr '\n' ' ')" \
	"<clear><clear>one 1 done <clear><clear>two 2 done <clear><clear>half; whole 4 done <clear><clear>end "
tap_is "output that does not go to the terminal does not remove it" \
	"$(raw ">$dir/out" | grep -o '<clear><clear>' | wc -l) $(wc -l <"$dir/out")" "1 4"

# --- the reader is gone, or a signal comes ---
printf '%s\n' 'seq 300000' "sleep 97.$$" >"$dir/commands"
batch -j 2 "$dir/commands" 2>"$dir/err" | head -n 1 >"$dir/out"
tap_is "the reader leaves: it ends like yes | head" "${PIPESTATUS[0]} $(cat "$dir/out" "$dir/err")" "141 1"
tap_is "and the running commands are ended" "$(running 97)" 0
(trap '' PIPE; exec timeout 30 "$iocom" batch --here -j 2 "$dir/commands" 2>"$dir/err") | head -n 1 >/dev/null
tap_is "SIGPIPE ignored: 255" "${PIPESTATUS[0]}" 255
tap_like "and it says why" "$(cat "$dir/err")" "cannot write a command's output: Broken pipe"
{ seq 5 | sed "s|.*|mkdir $dir/first-&|"; echo "sleep 96.$$"; seq 6 8 | sed "s|.*|mkdir $dir/first-&|"; } >"$dir/commands"
"$iocom" batch --here -j 1 --force --log "$dir/log" "$dir/commands" 2>"$dir/err" &
pid=$!
sleeps() { [ "$(running 96)" = 1 ]; }
tap_true "the list waits at a long command" until_true 10 sleeps
kill -TERM $pid
wait $pid
tap_is "a signal ends it with the signal's status" "$?" 143
tap_is "and ends the running commands" "$(sleeps || echo none)" none
tap_like "it says what became of them" "$(cat "$dir/err")" '5 done, 0 failed, 0 lost, .*; 1 stopped$'
tap_is "the log says so, too" "$(jq -r .state "$dir/log" | sort | uniq -c | tr -s ' \n' ' ')" " 5 ended 1 stopped "
cp "$dir/log" "$dir/log.was"
sed -i 's/sleep 96.*/true/' "$dir/commands"
printf '{"sequence":7,"comm' >>"$dir/log"
tap_is "--resume runs only the rest; a second mkdir would fail" \
	"$(status batch --resume -v --log "$dir/log" "$dir/commands")" 0
tap_like "it says what it leaves out" "$(cat "$dir/err")" '4 done, .*; 5 had ended before'
tap_is "all ran" "$(find "$dir" -name 'first-*' | wc -l)" 8
tap_is "the log has each command, and the cut line is gone" \
	"$(jq -r 'select(.state == "ended") | .sequence' "$dir/log" | sort -n | tr -d '\n')" 123456789
tap_is "resumed again: nothing is left to run" "$(status batch --resume --log "$dir/log" "$dir/commands") $(wc -l <"$dir/log")" "0 10"
cp "$dir/log.was" "$dir/log"
sed -i '2s/.*/echo another/' "$dir/commands"
tap_is "another list than the log's: nothing runs" "$(status batch --resume --log "$dir/log" "$dir/commands")" 125
tap_like "why" "$(cat "$dir/err")" 'command 2 differs in the log.*echo another'
echo hello >"$dir/log"
tap_is "no log" "$(status batch --resume --log "$dir/log" "$dir/commands") $(cat "$dir/log")" "125 hello"
tap_like "why" "$(cat "$dir/err")" 'log:1 is not a line of an iocom batch log'
tap_is "--resume without --log" "$(status batch --resume "$dir/commands")" 125

# --- a worker is lost: its command runs at most once ---
# shellcheck disable=SC2016
lines "echo begun >>$dir/begun; kill -KILL \$PPID; sleep 1" 'echo other'
tap_is "its command is lost: 255" "$(status batch -j 1 --force --log "$dir/log" "$dir/commands")" 255
tap_like "and is named" "$(cat "$dir/err")" 'outcome is unknown: echo begun'
tap_is "it is not run again" "$(wc -l <"$dir/begun")" 1
tap_is "the log says lost" "$(jq -r 'select(.sequence == 1) | .state' "$dir/log")" lost
tap_like "no worker, no others" "$(cat "$dir/err")" 'no worker is left to begin the rest'
lines "echo begun >>$dir/begun" 'echo other'
tap_is "it runs again if an option allows it" "$(status batch --resume -j 1 --log "$dir/log" "$dir/commands") $(wc -l <"$dir/begun")" "0 2"
# shellcheck disable=SC2016
lines "echo begun >>$dir/begun; kill -KILL \$PPID; sleep 1" 'echo other'
tap_is "with another worker the others run" "$(status batch -j 2 "$dir/commands") $(cat "$dir/out")" "255 other"

# --- what is refused: 125, nothing ran ---
lines "touch $dir/ran"
tap_is "no agent" "$(status timeout 30 "$iocom" batch -j 1 "$dir/commands")" 125
tap_like "why" "$(cat "$dir/err")" 'no agent answers at'
tap_like "equal refusals are reported once, with its own name" \
	"$(status timeout 30 "$iocom" batch -j 5 "$dir/commands") $(grep -c 'no agent answers' "$dir/err") $(grep -vc '^iocom batch: ' "$dir/err")" '^125 1 0$'
tap_like "how many is in the summary" "$(cat "$dir/err")" '; 5 of 5 workers refused$'
tap_is "-j 0" "$(status batch -j 0 "$dir/commands")" 125
tap_is "an option after the file is still an option" "$(status batch "$dir/commands" -j 0)" 125
tap_is "after -- it is a file" "$(status batch -- -j)" 125
tap_like "which does not exist" "$(cat "$dir/err")" 'cannot read -j: No such file'
tap_is "a file that does not exist" "$(status batch "$dir/nothing")" 125
tap_is "a log that cannot be made" "$(status batch --log "$dir/no/log" "$dir/commands")" 125
tap_is "two files" "$(status batch "$dir/commands" "$dir/commands" -j 1)" 125
tap_like "why" "$(cat "$dir/err")" 'one file at most'
{ echo -n 'touch ' && head -c 140000 /dev/zero | tr '\0' x; } >"$dir/commands"
tap_is "a line that is too long" "$(status batch "$dir/commands")" 125
printf 'touch a\0b\n' >"$dir/commands"
tap_is "a zero byte" "$(status batch "$dir/commands")" 125
tap_true "nothing ran" test ! -e "$dir/ran"
tap_is "a worker that gets a malformed message ends" "$(echo hello | status "$iocom" batch --worker)" 1
lines 'echo a'
tap_is "an output that cannot be written" "$(batch -j 1 "$dir/commands" 2>"$dir/err" >/dev/full; echo $?)" 255
tap_like "and it says so" "$(cat "$dir/err")" 'cannot write a command.s output: No space left'
tap_done
