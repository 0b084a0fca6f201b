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

# --- documents that are larger than a request: all or nothing, too
document() { # FILE CLASSES [CLASS-THAT-IS-THERE-TWICE]
	python3 - "$@" <<'END'
import json, sys
names = "cpu_ms requests request_mb read_mb written_mb fault_requests fault_mb memory_mb com_ms disk_ms wall_ms rest_ms shared_read_mb shared_written_mb"
needs = {name: 1 / 3 for name in names.split()}
one = {"warm": False, "input_id": 1, "input_mb": 0.1, "node": "n1", "end_s": 5, "needs": needs}
classes = [{"class": "many%04d" % i, "runs": 2, "needs": needs, "set": {}, "recent": [one, one]}
           for i in range(int(sys.argv[2]))]
classes += [dict(classes[0], **{"class": name}) for name in sys.argv[3:]]
json.dump({"iocom_profiles": 1, "profiles": classes}, open(sys.argv[1], "w"))
END
}
known() { "$iocom" profile --json | jq '.profiles | length'; }
before=$(known)
document "$dir/most.json" 1000
tap_true "a document of 1000 classes is larger than a request" test "$(stat -c %s "$dir/most.json")" -gt 1048576
document "$dir/more.json" 1001
tap_like "more classes than a user may have would push out what is known" \
	"$("$iocom" profile import "$dir/more.json" 2>&1)" "has 1001 classes; iocom keeps 1000 of a user$"
document "$dir/twice.json" 999 many0000
tap_like "a class that is there twice, in two parts" "$("$iocom" profile import "$dir/twice.json" 2>&1)" \
	"class 'many0000' is there twice$"
truncate -s 40M "$dir/large.json"
tap_like "what no user can have" "$("$iocom" profile import "$dir/large.json" 2>&1)" "large.json is larger than 32 MiB$"
tap_is "nothing of them was taken" "$(known)" "$before"
tap_is "1000 are taken" "$("$iocom" profile import "$dir/most.json")" "1000 classes, 2000 recent runs, 0 of them replaced"
tap_is "and listed, the agent telling of 100 at a time" "$("$iocom" profile --json | jq -c '[keys, (.profiles | map(.class) | unique | length)]')" '[["profiles"],1000]'
tap_is "with their needs" "$("$iocom" profile show many0999 --json | jq -c '.profiles | map([.class, .runs])')" '[["many0999",2]]'
tap_true "a shell is offered more than one answer has" test "$("$iocom" complete classes | wc -l)" -gt 100
"$iocom" profile export "$dir/back.json"
kept() { jq -cS '.profiles[] | [.class, .runs, .recent]' "$1" | md5sum; }
tap_is "and come back, the agent making 25 at a time" "$(kept "$dir/back.json")" "$(kept "$dir/most.json")"
tap_done
