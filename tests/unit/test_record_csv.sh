#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# `iocom record --csv` with an agent that plays made-up tasks: another reader of CSV agrees with
# its tables, which are whole however the program ends, and every refusal has its sentence.
set -uo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh disable=SC1091
. "$here/tests/lib/tap.sh"
build=${IOCOM_BUILD:-$here/build}
[ -x "$build/tests/tools/topagent" ] || tap_skip_all "topagent is not built"

dir=$(mktemp -d /tmp/iocom-csv-XXXXXX)
agent=
cleanup() {
	[ -z "$agent" ] || kill "$agent" 2>/dev/null
	rm -rf "$dir"
}
trap cleanup EXIT
export IOCOM_RUN_DIR=$dir
cd "$dir" || exit 1

play() { # [DOCUMENTS]
	rm -f "$dir/iocom.sock" # the old socket would look like a ready agent
	"$build/tests/tools/topagent" "$dir" "$@" &
	agent=$!
	for _ in $(seq 100); do
		[ -S "$dir/iocom.sock" ] && return
		sleep 0.05
	done
}
played() { wait "$agent" 2>/dev/null; agent=; }
record() { timeout 90 "$build/iocom" record "$@" 2>err; }
# read_csv FILE EXPRESSION: evaluates EXPRESSION over `rows`, a list of dictionaries with the same
# columns.
read_csv() {
	python3 - "$1" "$2" <<'END'
import csv, sys
with open(sys.argv[1], newline="", encoding="utf-8") as f:
    lines = list(csv.reader(f, strict=True))
assert all(len(l) == len(lines[0]) for l in lines), "rows of different length"
rows = [dict(zip(lines[0], l)) for l in lines[1:]]
print(eval(sys.argv[2]))
END
}

# --- each kind
for kind in node disks jobs tasks programs; do
	play
	record --csv $kind --delay 0.1 --seconds 1 --out $kind.csv
	tap_is "$kind: 0" "$?" 0
	played
	tap_is "$kind: several intervals, in order" "$(read_csv $kind.csv \
		'len({r["time"] for r in rows}) > 2 and [r["time"] for r in rows] == sorted(r["time"] for r in rows)')" True
	tap_is "$kind: rows of this node" "$(read_csv $kind.csv '{r["node"] for r in rows}')" "{'testnode'}"
done
tap_is "tasks: all of them" "$(read_csv tasks.csv 'len({r["pid"] for r in rows})')" 60
tap_is "tasks: one ended" "$(read_csv tasks.csv '{r["pid"] for r in rows if r["exited"] == "1"}')" "{'1102'}"
tap_is "tasks: bytes that are not UTF-8 are replaced" "$(read_csv tasks.csv \
	'"bad\ufffd\ufffd" in {r["command"] for r in rows}')" True
tap_is "jobs: by name, by cgroup" "$(read_csv jobs.csv 'sorted({r["job"] for r in rows})')" \
	"['cgroup:100', 'cgroup:103', 'n1-42-1', 'n1-42-2']"
tap_is "jobs: counters never go down" "$(read_csv jobs.csv \
	'all(int(a["minor_faults"]) <= int(b["minor_faults"]) for a, b in zip(rows, rows[4:]) if a["job"] == b["job"])')" True
tap_is "disks: three per interval" "$(read_csv disks.csv 'sorted({r["disk"] for r in rows})')" "['vda', 'vdb', 'vdc']"
tap_is "node: the drops" "$(read_csv node.csv '{r["drops"] for r in rows}')" "{'0'}"

# --- where it writes
play 3
record --csv jobs --delay 0.1 --out p.csv.gz
tap_is "the agent goes away: 1" "$?" 1
played
tap_like "the agent goes away: said" "$(cat err)" 'the part recorded so far is kept'
zcat p.csv.gz >p.csv
tap_is "the agent goes away: the rows before are complete" "$(read_csv p.csv 'len(rows)')" 12
play
record --csv disks --delay 0.1 --seconds 0.5
tap_is "without a name: 0" "$?" 0
played
tap_is "without a name: iocom-disks.csv" "$(read_csv iocom-disks.csv 'len(rows) > 2')" True
tap_is "only its owner may read it" "$(stat -c %a iocom-disks.csv)" 600
play
record --csv disks --delay 0.1 --seconds 0.5 --out - >out.csv
tap_is "standard output" "$(read_csv out.csv 'len(rows) > 2')" True
played
play
"$build/iocom" record --csv disks --delay 0.1 --out s.csv 2>err &
recorder=$!
until_bytes() { for _ in $(seq 100); do [ "$(cat .s.csv.* 2>/dev/null | wc -l)" -gt 4 ] && return; sleep 0.05; done; }
until_bytes
tap_true "rows are in the file while it records" test "$(cat .s.csv.* | wc -l)" -gt 4
kill -INT "$recorder"
wait "$recorder"
tap_is "a signal ends it with 0" "$?" 0
played
tap_is "a signal: the table is whole" "$(read_csv s.csv 'len(rows) >= 3')" True
tap_is "no temporary file stays" "$(find . -name '.*.??????*' -type f)" ""

# --- a name with control sequences: unchanged in a file, harmless on a screen
tap_is "tasks: a file has the name unchanged" "$(read_csv tasks.csv '"e\x1b[2Jvil" in {r["command"] for r in rows}')" True
play
timeout 90 script -qec "$build/iocom record --csv tasks --delay 0.1 --seconds 1 --out -" /dev/null \
	</dev/null >screen 2>&1
kill "$agent" 2>/dev/null
played
tap_is "a terminal gets no escape sequence" "$(grep -c $'\033' screen) $(grep -q 'e?\[2Jvil' screen; echo $?)" "0 0"

# --- refused
record --csv disks --delay 0.1 --out s.csv
tap_is "an existing file: 1" "$?" 1
tap_like "an existing file: the sentence" "$(cat err)" 's.csv is there already; --force replaces it'
record --csv disks --out /nonexistent/x
tap_like "no such directory: the sentence" "$(cat err)" 'cannot write /nonexistent/x: No such file'
play
record --csv disks --delay 0.1 --out /dev/full
tap_is "a full disk: 1" "$?" 1
tap_like "a full disk: the sentence" "$(cat err)" 'cannot write /dev/full: No space left on device'
kill "$agent" 2>/dev/null
played
for bad in "--csv" "--csv nothing" "--csv jobs --delay 0" "--csv jobs --delay 4000" "--csv jobs -d x" \
	"--delay 1" "--direct" "--csv jobs --merge m" "--csv jobs operand"; do
	# shellcheck disable=SC2086
	record $bad >/dev/null
	tap_is "'$bad': usage" "$?" 2
done
tap_like "the sentence lists the kinds" "$(record --csv nothing; cat err)" 'takes node, disks, jobs, tasks, programs or maps'
rm -f iocom.sock
if [ "$(id -u)" -eq 0 ]; then
	(
		cp "$build/iocom" "$dir/iocom" && chmod 755 "$dir" "$dir/iocom"
		# Other users cannot count by themselves.
		setpriv --reuid=65534 --clear-groups "$dir/iocom" record --csv jobs --out - 2>err2 >out2
		echo $? >status2
	)
	tap_is "no agent, no root: 1" "$(cat status2)" 1
	tap_like "no agent, no root: the sentence" "$(cat err2)" 'no agent answers at .*needs root'
	tap_is "no agent, no root: nothing is written" "$(cat out2)" ""
else
	tap_skip "no agent, no root" "this test is not root"
fi
tap_done
