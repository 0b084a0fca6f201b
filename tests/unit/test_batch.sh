#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# `iocom batch` with workers of this machine: each command once, its output together, its
# status told; what becomes of commands when a worker is lost.
set -uo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh disable=SC1091
. "$here/tests/lib/tap.sh"
dir=$(mktemp -d /tmp/iocom-batch-XXXXXX)
trap 'rm -rf "$dir"' EXIT
export IOCOM_RUN_DIR=$dir/none
iocom=${IOCOM_BUILD:-$here/build}/iocom
batch() { timeout 30 "$iocom" batch --here "$@"; }
status() { "$@" >"$dir/out" 2>"$dir/err"; echo $?; }
lines() { printf '%s\n' "$@" >"$dir/commands"; }
running() { ps -eo args | grep -c "^sleep $1\.$$\$"; } # SECONDS; ours alone

# --- what runs ---
seq 500 | sed "s|.*|mkdir $dir/once-&|" >"$dir/commands"
tap_is "500 commands, 4 at a time: all end well" "$(status batch -j 4 "$dir/commands")" 0
tap_is "each ran, and once: mkdir twice would fail" "$(find "$dir" -name 'once-*' | wc -l)" 500
tap_is "from standard input, the last line without its end" \
	"$(printf '# one\n\n  echo a\n\techo b' | batch -j 1)" $'a\nb'
lines 'echo "a  b"' 'echo a  b' 'X=1; echo $X' 'exec echo $((1+2))'
tap_is "a shell reads what needs one" "$(batch -j 1 "$dir/commands")" $'a  b\na b\n1\n3'
lines 'cat; echo end'
tap_is "their standard input is empty" "$(echo no | batch -j 1 "$dir/commands")" end
lines 'for i in 1 2 3; do echo a$i; sleep 0.05; done' 'for i in 1 2 3; do echo b$i; sleep 0.05; done'
tap_is "what one says stands together" "$(batch -j 2 "$dir/commands" | tr -d 0-9 | uniq | wc -l)" 2
lines 'head -c 3000000 /dev/zero' 'head -c 3000000 /dev/zero'
tap_is "much output is whole" "$(batch -j 2 "$dir/commands" | wc -c)" 6000000
{ seq 40 | sed 's/.*/true/'; echo 'sleep 2'; seq 20 | sed 's/.*/true/'; } >"$dir/commands"
batch -j 2 --log "$dir/log" "$dir/commands"
tap_is "those behind a long one go to another worker: it is the last to end" \
	"$(wc -l <"$dir/log") $(tail -n 1 "$dir/log" | jq .sequence)" "61 41"
lines 'echo out' 'echo err >&2'
tap_is "standard error is one" "$(batch -j 1 "$dir/commands" 2>/dev/null)" out
seq 3 | sed 's/.*/yes & | head -n 200000/' >"$dir/commands"
tap_is "much of one stands together, too" "$(batch -j 3 "$dir/commands" | uniq | wc -l)" 3
tap_is "it waits in a file; where none can be: 255" \
	"$(TMPDIR=$dir/no status batch -j 3 "$dir/commands")" 255
tap_like "why" "$(cat "$dir/err")" "cannot make a file for a command's output .*No such file"
tap_is "one at a time needs none" "$(TMPDIR=$dir/no batch -j 1 "$dir/commands" | uniq | wc -l)" 3
for i in 6 1 4 2 5 3; do echo "sleep 0.$i; echo $i"; done >"$dir/commands"
tap_is "as they end" "$(batch -j 6 "$dir/commands" | head -n 1)" 1
tap_is "-k: in the order of the list; options may stand behind it" "$(batch "$dir/commands" -j 6 -k | tr -d '\n')" 614253
{ echo 'sleep 0.5; yes 0 | head -n 100000'; seq 9 | sed 's/.*/yes & | head -n 100000/'; } >"$dir/commands"
tap_is "-k: and whole" "$(batch -j 3 -k "$dir/commands" | uniq -c | tr -s ' \n' ' ')" \
	" $(seq 0 9 | sed 's/^/100000 /' | tr '\n' ' ')"
{ echo 'sleep 0.5'; seq 500 | sed 's/^/echo /'; } >"$dir/commands"
tap_is "-k: those that wait for a long one are many" \
	"$(batch -j 2 -k "$dir/commands" | cmp - <(seq 500) && echo same)" same

# --- their statuses ---
lines true 'exit 3' false 'kill -TERM $$' no-such-command 'echo fine'
tap_is "as many as failed" "$(status batch -j 2 --log "$dir/log" "$dir/commands")" 4
tap_is "the log has each with its status" \
	"$(jq -r '"\(.sequence) \(.state) \(.status)"' "$dir/log" | sort | tr '\n' ' ')" \
	"1 ended 0 2 ended 3 3 ended 1 4 ended 143 5 ended 127 6 ended 0 "
tap_like "what cannot be started is said" "$(cat "$dir/err")" '^iocom batch: no-such-command: command not found$'
# Nobody may look into a directory of PATH: as root that has to be somebody else.
mkdir "$dir/shut" "$dir/plain"
chmod 0 "$dir/shut"
echo x >"$dir/plain/plain-file"
cp "$iocom" "$dir/iocom" # the build may be out of reach for it
chmod 755 "$dir" "$dir/plain" "$dir/iocom"
: >"$dir/log"
chmod 666 "$dir/log"
who=()
[ "$(id -u)" -ne 0 ] || who=(setpriv --reuid 65534 --clear-groups)
lines no-such-command plain-file /etc/passwd /no/such/command /etc true
{ PATH=$dir/shut:$dir/plain:$PATH timeout 30 "${who[@]}" "$dir/iocom" batch --here -q -j 1 --log "$dir/log" <"$dir/commands"; } 2>"$dir/err"
tap_is "statuses of what is not found, or cannot be executed, as iocom run has them" \
	"$(jq -r '"\(.command) \(.status)"' "$dir/log" | tr '\n' ' ')" \
	"no-such-command 127 plain-file 126 /etc/passwd 126 /no/such/command 127 /etc 126 true 0 "
tap_is "and in its words" "$(sed 's/^iocom batch: //' "$dir/err" | tr '\n' ';')" \
	"no-such-command: command not found;plain-file: Permission denied;/etc/passwd: Permission denied;/no/such/command: No such file or directory;/etc: Is a directory;"
seq 150 | sed 's/.*/false/' >"$dir/commands"
tap_is "more than 100: 101" "$(status batch -j 2 "$dir/commands")" 101
tap_is "no commands: nothing to do" "$(status batch </dev/null)" 0

printf 'true \\377\\n' >"$dir/commands"
tap_is "a name that is no UTF-8 has its line" \
	"$(status batch --log "$dir/log" "$dir/commands") $(jq -r .status "$dir/log")" "0 0"

# --- what is said of it all ---
lines true 'exit 3' true
batch -j 1 "$dir/commands" 2>"$dir/err"
tap_like "one failed: a summary" "$(cat "$dir/err")" '^iocom batch: 2 done, 1 failed, 0 lost, [0-9.]+ s, [0-9]+ a second$'
tap_is "-q: none" "$(batch -q -j 1 "$dir/commands" 2>&1)" ""
lines true
tap_is "all is well: none" "$(batch -j 1 "$dir/commands" 2>&1)" ""
tap_like "-v: one" "$(batch -v -j 1 "$dir/commands" 2>&1)" '^iocom batch: 1 done, 0 failed'
terminal() { script -qec "$iocom batch --here $* $dir/commands" /dev/null | tr '\r' '\n'; }
tap_like "on a terminal one" "$(terminal)" '^iocom batch: 1 done'
lines 'sleep 1.7' true
tap_like "and progress" "$(terminal -j 1)" '^0 done, 0 failed, 0 lost, 1 begun, 0 a second, [0-9]+ % of the list'
tap_is "-q: neither" "$(terminal -q -j 1)" ""
lines 'sleep 1.5; echo one' 'sleep 0.1; echo two' 'sleep 0.1; printf half' 'sleep 0.1; echo "; whole"' 'sleep 0.1; echo end'
raw() { script -qec "$iocom batch --here -j 1 $dir/commands $*" /dev/null | tr -d '\r' | sed 's/\x1b\[K/<clear>/g'; }
raw >"$dir/out"
tap_is "what a command says takes the place of the line, which is there again at once" \
	"$(grep -oE '^[124] done|<clear><clear>[^<]*$' "$dir/out" | tr '\n' ' ')" \
	"<clear><clear>one 1 done <clear><clear>two 2 done <clear><clear>half; whole 4 done <clear><clear>end "
tap_is "it is not taken away for what is not to be seen there" \
	"$(raw ">$dir/out" | grep -o '<clear><clear>' | wc -l) $(wc -l <"$dir/out")" "1 4"

# --- nobody reads, or a signal comes ---
printf '%s\n' 'seq 300000' "sleep 97.$$" >"$dir/commands"
batch -j 2 "$dir/commands" 2>"$dir/err" | head -n 1 >"$dir/out"
tap_is "its reader leaves: as yes | head" "${PIPESTATUS[0]} $(cat "$dir/out" "$dir/err")" "141 1"
tap_is "and what ran is ended" "$(running 97)" 0
(trap '' PIPE; exec timeout 30 "$iocom" batch --here -j 2 "$dir/commands" 2>"$dir/err") | head -n 1 >/dev/null
tap_is "who taught it not to: 255" "${PIPESTATUS[0]}" 255
tap_like "and said" "$(cat "$dir/err")" "cannot write a command's output: Broken pipe"
{ seq 5 | sed "s|.*|mkdir $dir/first-&|"; echo "sleep 96.$$"; seq 6 8 | sed "s|.*|mkdir $dir/first-&|"; } >"$dir/commands"
"$iocom" batch --here -j 1 --log "$dir/log" "$dir/commands" 2>"$dir/err" &
pid=$!
sleeps() { [ "$(running 96)" = 1 ]; }
tap_true "a list stands at a long one" until_true 10 sleeps
kill -TERM $pid
wait $pid
tap_is "a signal ends it, as by the signal" "$?" 143
tap_is "and what ran" "$(sleeps || echo none)" none
tap_like "it is said what became of it" "$(cat "$dir/err")" '5 done, 0 failed, 0 lost, .*; 1 stopped$'
tap_is "in the log, too" "$(jq -r .state "$dir/log" | sort | uniq -c | tr -s ' \n' ' ')" " 5 ended 1 stopped "
cp "$dir/log" "$dir/log.was"
sed -i 's/sleep 96.*/true/' "$dir/commands"
printf '{"sequence":7,"comm' >>"$dir/log"
tap_is "--resume: the rest; mkdir twice would fail" \
	"$(status batch --resume -v --log "$dir/log" "$dir/commands")" 0
tap_like "what is left out is said" "$(cat "$dir/err")" '4 done, .*; 5 had ended before'
tap_is "all ran" "$(find "$dir" -name 'first-*' | wc -l)" 8
tap_is "the log has each, and the line that was cut is gone" \
	"$(jq -r 'select(.state == "ended") | .sequence' "$dir/log" | sort -n | tr -d '\n')" 123456789
tap_is "again: nothing is left" "$(status batch --resume --log "$dir/log" "$dir/commands") $(wc -l <"$dir/log")" "0 10"
cp "$dir/log.was" "$dir/log"
sed -i '2s/.*/echo another/' "$dir/commands"
tap_is "another list than the log's: nothing runs" "$(status batch --resume --log "$dir/log" "$dir/commands")" 125
tap_like "why" "$(cat "$dir/err")" 'command 2 differs in the log.*echo another'
echo hello >"$dir/log"
tap_is "no log" "$(status batch --resume --log "$dir/log" "$dir/commands") $(cat "$dir/log")" "125 hello"
tap_like "why" "$(cat "$dir/err")" 'log:1 is not a line of an iocom batch log'
tap_is "--resume without --log" "$(status batch --resume "$dir/commands")" 125

# --- a worker is lost: at most once ---
# shellcheck disable=SC2016
lines "echo begun >>$dir/begun; kill -KILL \$PPID; sleep 1" 'echo other'
tap_is "its command is lost: 255" "$(status batch -j 1 --log "$dir/log" "$dir/commands")" 255
tap_like "and is named" "$(cat "$dir/err")" 'outcome is unknown: echo begun'
tap_is "it is not run again" "$(wc -l <"$dir/begun")" 1
tap_is "the log says lost" "$(jq -r 'select(.sequence == 1) | .state' "$dir/log")" lost
tap_like "no worker, no others" "$(cat "$dir/err")" 'no worker is left to begin the rest'
lines "echo begun >>$dir/begun" 'echo other'
tap_is "it runs again where that is asked for" "$(status batch --resume -j 1 --log "$dir/log" "$dir/commands") $(wc -l <"$dir/begun")" "0 2"
# shellcheck disable=SC2016
lines "echo begun >>$dir/begun; kill -KILL \$PPID; sleep 1" 'echo other'
tap_is "with another worker the others run" "$(status batch -j 2 "$dir/commands") $(cat "$dir/out")" "255 other"

# --- what is refused: 125, nothing ran ---
lines "touch $dir/ran"
tap_is "no agent" "$(status timeout 30 "$iocom" batch -j 1 "$dir/commands")" 125
tap_like "why" "$(cat "$dir/err")" 'no agent answers at'
tap_like "once for all that are refused in the same words, by its own name" \
	"$(status timeout 30 "$iocom" batch -j 5 "$dir/commands") $(grep -c 'no agent answers' "$dir/err") $(grep -vc '^iocom batch: ' "$dir/err")" '^125 1 0$'
tap_like "how many is in the summary" "$(cat "$dir/err")" '; 5 of 5 workers refused$'
tap_is "-j 0" "$(status batch -j 0 "$dir/commands")" 125
tap_is "an option behind the file is none the less one" "$(status batch "$dir/commands" -j 0)" 125
tap_is "behind -- it is a file" "$(status batch -- -j)" 125
tap_like "that is not there" "$(cat "$dir/err")" 'cannot read -j: No such file'
tap_is "a file that is not there" "$(status batch "$dir/nothing")" 125
tap_is "a log that cannot be" "$(status batch --log "$dir/no/log" "$dir/commands")" 125
tap_is "two files" "$(status batch "$dir/commands" "$dir/commands" -j 1)" 125
tap_like "why" "$(cat "$dir/err")" 'one file at most'
{ echo -n 'touch ' && head -c 140000 /dev/zero | tr '\0' x; } >"$dir/commands"
tap_is "a line that is too long" "$(status batch "$dir/commands")" 125
printf 'touch a\0b\n' >"$dir/commands"
tap_is "a zero byte" "$(status batch "$dir/commands")" 125
tap_true "nothing ran" test ! -e "$dir/ran"
tap_is "a worker that is told nonsense leaves" "$(echo hello | status "$iocom" batch --worker)" 1
lines 'echo a'
tap_is "an output that cannot be written" "$(batch -j 1 "$dir/commands" 2>"$dir/err" >/dev/full; echo $?)" 255
tap_like "it is said" "$(cat "$dir/err")" 'cannot write a command.s output: No space left'
tap_done
