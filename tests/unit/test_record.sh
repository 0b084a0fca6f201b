#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# `iocom record` with an agent that plays a recording: its file is complete or does not exist,
# however the program ends, and every refusal has its sentence.
set -uo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh disable=SC1091
. "$here/tests/lib/tap.sh"
build=${IOCOM_BUILD:-$here/build}
[ -x "$build/tests/tools/recordagent" ] || tap_skip_all "recordagent is not built"

dir=$(mktemp -d /tmp/iocom-record-XXXXXX)
agent=
cleanup() {
	[ -z "$agent" ] || kill "$agent" 2>/dev/null
	rm -rf "$dir"
}
trap cleanup EXIT
export IOCOM_RUN_DIR=$dir
cd "$dir" || exit 1

play() { # MODE [FILE]
	"$build/tests/tools/recordagent" "$dir" "$@" &
	agent=$!
	for _ in $(seq 100); do
		[ -S "$dir/iocom.sock" ] && return
		sleep 0.05
	done
}
played() { wait "$agent" 2>/dev/null; agent=; }
record() { timeout 90 "$build/iocom" record "$@" 2>err; }
no_leftovers() { tap_is "$1: no temporary file stays" "$(find . -name '.*.??????*' -type f)" ""; }

cat >one <<'END'
{"record":"header","version":1,"live":true,"node":"t","policy":"iocm-re","start_ns":1000000000,"rates":"wall"}
{"record":"node","time_ms":0.0,"node":0,"name":"t"}
{"record":"submit","time_ms":5.0,"job":"t-1","home":0,"cpu_ms":10.0}
{"record":"finish","time_ms":9.0,"job":"t-1","node":0,"start_ms":5.0}
{"record":"end","time_ms":9.0,"lines":5,"dropped":2}
END
sed 's/"node":"t"/"node":"u"/;s/t-1/u-1/;s/"name":"t"/"name":"u"/' one >two

# --- whole
for out in r.jsonl r.jsonl.gz; do
	play serve one
	record --out $out --seconds 0.3
	tap_is "$out: 0" "$?" 0
	played
	tap_is "$out: the agent's lines" "$(zcat -f $out)" "$(cat one)"
	tap_is "$out: only its owner may read it" "$(stat -c %a $out)" 600
	no_leftovers $out
done
tap_like "it reports what came" "$(cat err)" 'r.jsonl.gz: node t, [0-9]+ s: 1 jobs submitted, 0 decisions, 1 ended; 5 lines'
tap_like "it reports lost lines" "$(cat err)" '2 lines were lost'

play serve one
"$build/iocom" record --out s.jsonl 2>err &
recorder=$!
for _ in $(seq 100); do
	ls .s.jsonl.* >/dev/null 2>&1 && break
	sleep 0.05
done
sleep 0.3
tap_is "while it records the file's name does not exist" "$(ls s.jsonl 2>/dev/null)" ""
kill -TERM "$recorder"
wait "$recorder"
tap_is "a signal ends it with 0" "$?" 0
played
tap_is "a signal: the recording is whole" "$(cat s.jsonl)" "$(cat one)"

play serve one
out=$(record --out - --seconds 0.2)
tap_is "standard output" "$out" "$(cat one)"
played

# --- not whole
play cut one
record --out c.jsonl.gz
tap_is "the agent goes away: 1" "$?" 1
played
tap_like "the agent goes away: said" "$(cat err)" 'the agent closed the connection; the part recorded so far is kept'
tap_is "the agent goes away: kept" "$(zcat c.jsonl.gz)" "$(head -n 4 one)"

play silent one
record --out w.jsonl --seconds 0.1
tap_is "no end line in time: 1" "$?" 1
tap_like "no end line in time: the sentence" "$(cat err)" 'did not end the recording in time'
tap_is "no end line in time: the recording is kept" "$(cat w.jsonl)" "$(head -n 4 one)"
kill "$agent"
played

# --- refused
record --out x.jsonl
tap_is "no agent: 1" "$?" 1
tap_like "no agent: the sentence" "$(cat err)" 'no agent answers at .*iocom.sock; start one'
play refuse
record --out x.jsonl
tap_is "the agent refuses: 1" "$?" 1
tap_like "the agent refuses: its sentence" "$(cat err)" 'iocom record: only root may record node t'
played
tap_is "nothing was written" "$(ls x.jsonl 2>/dev/null)" ""
no_leftovers refused
record --out r.jsonl
tap_is "an existing file: 1" "$?" 1
tap_like "an existing file: the sentence" "$(cat err)" 'r.jsonl is there already; --force replaces it'
play serve two
record --out r.jsonl --force --seconds 0.1
tap_is "--force: 0" "$?" 0
played
tap_is "--force replaces it" "$(cat r.jsonl)" "$(cat two)"
record --out /nonexistent/x
tap_is "no such directory: 1" "$?" 1
tap_like "no such directory: the sentence" "$(cat err)" 'cannot write /nonexistent/x: No such file'
play serve one
record --out /dev/full --seconds 0.1
tap_is "a full disk: 1" "$?" 1
tap_like "a full disk: the sentence" "$(cat err)" 'cannot write /dev/full: No space left on device'
played
for bad in "--seconds 0" "--seconds x" "--seconds" "--nonsense" "operand" "--merge" "--merge m" \
	"--merge m --out o one"; do
	# shellcheck disable=SC2086
	record $bad >/dev/null
	tap_is "'$bad': usage" "$?" 2
done
tap_like "help" "$("$build/iocom" record --help)" '^usage: iocom record \[--out FILE\]'

# --- merged
record --merge m.jsonl.gz one two
tap_is "merge: 0" "$?" 0
tap_is "merge: both jobs" "$(zcat m.jsonl.gz | grep -c '"submit"')" 2
tap_is "merge: what was lost adds up" "$(zcat m.jsonl.gz | tail -n 1 | jq .dropped)" 4
tap_is "merge to standard output" "$(record --merge - one two)" "$(zcat m.jsonl.gz)"
record --merge m.jsonl.gz one two
tap_is "merge onto an existing file: 1" "$?" 1
record --merge m.jsonl.gz --force two one
tap_is "merge --force: 0" "$?" 0
head -n 3 two >short
record --merge n.jsonl one short
tap_is "merge of a recording that was cut off: 0" "$?" 0
tap_like "merge of a recording that was cut off: the sentence" "$(cat err)" '1 of the recordings was cut off'
record --merge o.jsonl one one
tap_is "merge of one node twice: 1" "$?" 1
tap_like "merge of one node twice: said" "$(cat err)" 'one and one are both of node .t.; merge only one of each node'
echo rubbish >>two
record --merge o.jsonl one two
tap_is "merge of a bad file: 1" "$?" 1
tap_like "merge of a bad file: the place" "$(cat err)" 'two:6:1: '
tap_is "a failed merge writes nothing" "$(ls o.jsonl 2>/dev/null)" ""
no_leftovers merge
tap_done
