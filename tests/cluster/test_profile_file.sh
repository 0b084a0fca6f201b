#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# The class profiles of a running agent are locked, damaged, or of a version to come: runs are
# learned later, the file is set aside and said so, and jobs run all the while.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/agent.sh
agent_up profile-file
db=$dir/state/profile.db

runs() { "$iocom" profile --json | jq "[.profiles[] | select(.class == \"$1\")][0].runs // 0"; }
has_run() { [ "$(runs "$1")" -eq "$2" ]; }
aside() { find "$dir/state" -name 'profile.db.aside-*' ! -name '*-wal' | wc -l; }
check() { "$iocom" doctor --json 2>/dev/null | jq -r '.checks[] | select(.check == "profiles") | .state + ": " + .says'; }

"$iocom" run --class a -- true
tap_true "a run is learned" until_true 10 has_run a 1
tap_like "doctor" "$(check)" '^ok: '

# --- locked
exec 8> >(exec python3 -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("begin immediate")
open(sys.argv[2], "w").close()
sys.stdin.read()
db.execute("rollback")' "$db" "$dir/locked")
locker=$!
tap_true "another program locks the profiles" until_true 10 test -e "$dir/locked"
tap_is "jobs run" "$("$iocom" run --class a -- echo here)$("$iocom" run --class a -- echo there)" herethere
tap_true "the agent says so" until_true 10 grep -q 'keeps the class profiles locked' "$dir/log"
tap_is "nothing is learned meanwhile" "$(runs a)" 1
exec 8>&-
wait "$locker" 2>/dev/null
tap_true "what waited is learned then" until_true 20 has_run a 3

# --- damaged
agent_stop
python3 - "$db" <<'END'
import sys
with open(sys.argv[1], "r+b") as f:
    f.write(b"a bad disk wrote this")
END
agent_start
tap_is "a damaged file is set aside" "$(aside)" 1
tap_like "the log has one line" "$(grep -c 'learning begins anew' "$dir/log") $(grep 'learning begins anew' "$dir/log")" \
	'^1 .*not a database.*kept as .*profile.db.aside-'
tap_like "doctor says so" "$(check)" '^degraded: the class profiles were set aside as .*profile.db.aside-'
tap_is "what was known is gone" "$(runs a)" 0
"$iocom" run --class b -- true
tap_true "learning goes on" until_true 10 has_run b 1

# --- a version to come
agent_stop
python3 -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("pragma user_version=99")
db.commit()' "$db"
agent_start
tap_is "so is a file of a version to come" "$(aside)" 2
tap_like "with its version" "$(grep 'learning begins anew' "$dir/log" | tail -n 1)" 'version 99'

# --- edited to nonsense
"$iocom" run --class c -- true
tap_true "a class to edit" until_true 10 has_run c 1
agent_stop
python3 -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("update profile set cpu_ms=-1")
db.execute("update run set wall_ms=9e999")
db.commit()' "$db"
agent_start
tap_like "numbers that no run can have are removed, and the log says so" "$(grep 'no run can have' "$dir/log")" \
	'[0-9]+ entries of the class profiles .*profile.db had numbers that no run can have and were removed$'
tap_is "the file stays" "$(aside)" 2
tap_is "the class is unknown again" "$(runs c)" 0
agent_stop
agent_start
tap_is "a sound file stays" "$(aside)" 2
tap_like "and doctor is content" "$(check)" '^ok: '
tap_done
