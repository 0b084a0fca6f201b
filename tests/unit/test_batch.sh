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

# --- their statuses ---
lines true 'exit 3' false 'kill -TERM $$' no-such-command 'echo fine'
tap_is "as many as failed" "$(status batch -j 2 --log "$dir/log" "$dir/commands")" 4
tap_is "the log has each with its status" \
	"$(jq -r '"\(.sequence) \(.state) \(.status)"' "$dir/log" | sort | tr '\n' ' ')" \
	"1 ended 0 2 ended 3 3 ended 1 4 ended 143 5 ended 127 6 ended 0 "
tap_like "what cannot be started is said" "$(cat "$dir/err")" 'no-such-command: No such file'
seq 150 | sed 's/.*/false/' >"$dir/commands"
tap_is "more than 100: 101" "$(status batch -j 2 "$dir/commands")" 101
tap_is "no commands: nothing to do" "$(status batch </dev/null)" 0

# --- a worker is lost: at most once ---
# shellcheck disable=SC2016
lines "echo begun >>$dir/begun; kill -KILL \$PPID; sleep 1" 'echo other'
tap_is "its command is lost: 255" "$(status batch -j 1 --log "$dir/log" "$dir/commands")" 255
tap_like "and is named" "$(cat "$dir/err")" 'outcome is unknown: echo begun'
tap_is "it is not run again" "$(wc -l <"$dir/begun")" 1
tap_is "the log says lost" "$(jq -r 'select(.sequence == 1) | .state' "$dir/log")" lost
tap_like "no worker, no others" "$(cat "$dir/err")" 'no worker is left: the rest was not begun'
tap_is "with another worker the others run" "$(status batch -j 2 "$dir/commands") $(cat "$dir/out")" "255 other"

# --- what is refused: 125, nothing ran ---
lines "touch $dir/ran"
tap_is "no agent" "$(status timeout 30 "$iocom" batch -j 1 "$dir/commands")" 125
tap_like "why" "$(cat "$dir/err")" 'no agent answers at'
tap_is "-j 0" "$(status batch -j 0 "$dir/commands")" 125
tap_is "a file that is not there" "$(status batch "$dir/nothing")" 125
tap_is "a log that cannot be" "$(status batch --log "$dir/no/log" "$dir/commands")" 125
tap_is "two files" "$(status batch "$dir/commands" "$dir/commands")" 125
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
