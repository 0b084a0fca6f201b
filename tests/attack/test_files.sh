#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Files put into an agent's directories before it starts: other users' directories, links, fifos,
# another user's journal, one with wild rows, one that is broken.
set -uo pipefail
cd "$(dirname "$0")/../.."
. tests/lib/tap.sh
. tests/attack/lib.sh
PYTHON=/usr/bin/python3
[ -x $PYTHON ] || tap_skip_all "no $PYTHON"
mkdir "$DIR/agent"

# Makes a new pair of directories, which the caller then spoils.
fresh() {
	rm -rf "$DIR/at"
	mkdir -p "$DIR/at/state/jobs" "$DIR/at/run" "$DIR/at/elsewhere"
	STATE=$DIR/at/state RUN=$DIR/at/run
}
DAEMON=$IOCOM_BUILD/iocomd
start() { # OPTION...: the agent's sentence; 1 when it refuses, 0 when it runs (it is stopped then)
	"$DAEMON" --name solo --port 7970 --run-dir "$RUN" --state-dir "$STATE" \
		--shim "$IOCOM_BUILD/iocom-shim" --munge-socket /nowhere/munge "$@" >"$DIR/out" 2>&1 &
	local pid=$! rc=1 i
	for ((i = 0; i < 600; i++)); do
		kill -0 $pid 2>/dev/null || break
		[ ! -S "$RUN/iocom.sock" ] || { rc=0 && break; }
		sleep 0.05
	done
	kill $pid 2>/dev/null
	wait $pid
	cat "$DIR/out"
	return $rc
}
# The agent must refuse with one line that names what is wrong.
refuses() { # ATTACK PATTERN OPTION...
	local attack=$1 pattern=$2 out refused=no logged
	shift 2
	out=$(start "$@") || refused=yes
	logged=$([ "$(grep -cE -- "$pattern" <<<"$out")" -eq 1 ] && echo once || echo no)
	row "$attack" $refused "$logged"
	if [ $refused = yes ] && [ "$logged" = once ]; then tap_ok "$attack"; else tap_fail "$attack" "$out"; fi
}

fresh
tap_true "directories as they should be" start
chmod 1777 "$DIR/at"
tap_true "below a sticky directory like /tmp" start

# --- directories ---
fresh && chown $MALLORY "$DIR/at"
refuses "state below a user's directory" "/at belongs to uid $MALLORY"
fresh && chmod 777 "$DIR/at"
refuses "state below a directory that all may write" '/at \(mode 0777\)'
fresh && chown $MALLORY "$STATE"
refuses "state directory of a user" "/state belongs to uid $MALLORY"
fresh && chmod 1777 "$STATE"
refuses "state directory that all may write, sticky" '/state \(mode 1777\)'
fresh && chgrp $MALLORY "$STATE" && chmod 770 "$STATE"
refuses "state directory that a group may write" '/state \(mode 0770\)'
fresh && chown $MALLORY "$STATE/jobs"
refuses "records of a user" "/jobs belongs to uid $MALLORY"
fresh && rmdir "$STATE/jobs" && chown $MALLORY "$DIR/at/elsewhere" && ln -s "$DIR/at/elsewhere" "$STATE/jobs"
refuses "records by a link, in a user's directory" "elsewhere belongs to uid $MALLORY"
fresh && ln -s "$STATE" "$DIR/at/link" && chown -h $MALLORY "$DIR/at/link" && STATE=$DIR/at/link
refuses "state by a user's link" "link belongs to uid $MALLORY"
fresh && ln -s "$STATE" "$DIR/at/link" && STATE=$DIR/at/link
tap_true "state by root's link to root's directory" start
fresh && chown $MALLORY "$RUN"
refuses "run directory of a user" "/run belongs to uid $MALLORY"
fresh && mkdir "$RUN/jobs" && chmod 777 "$RUN/jobs"
refuses "jobs' sockets where all may write" '/jobs \(mode 0777\)'

# --- what the agent believes: its configuration, its shim, PAM's rules, munged ---
fresh && echo '[iocom]' >"$DIR/at/conf"
tap_true "root's configuration" start --config "$DIR/at/conf"
chown $MALLORY "$DIR/at/conf"
refuses "a configuration of a user" "configuration file .*/at/conf belongs to uid $MALLORY" --config "$DIR/at/conf"
chown 0 "$DIR/at/conf" && chmod 666 "$DIR/at/conf"
refuses "a configuration that all may write" '/at/conf \(mode 0666\)' --config "$DIR/at/conf"
chmod 644 "$DIR/at/conf" && chown $MALLORY "$DIR/at/elsewhere" && ln -s ../conf "$DIR/at/elsewhere/conf" &&
	ln -s elsewhere/conf "$DIR/at/hop"
refuses "a configuration by way of a user's directory" "/elsewhere belongs to uid $MALLORY" --config "$DIR/at/hop"
# A copy that is root's alone, wherever the build is.
DAEMON=$DIR/iocomd
install -m 755 "$IOCOM_BUILD/iocomd" "$DAEMON"
install -m 755 "$IOCOM_BUILD/iocom-shim" "$DIR/at/elsewhere/shim"
refuses "a shim in a user's directory" "shim .*/elsewhere belongs to uid $MALLORY" --shim "$DIR/at/elsewhere/shim"
chmod 777 "$DIR/at/elsewhere" && chown 0 "$DIR/at/elsewhere"
refuses "PAM's rules where all may write" "PAM's directory .*/elsewhere \(mode 0777\)" --pam-dir "$DIR/at/elsewhere" \
	--shim "$DAEMON"
refuses "munged's socket where all may write" "munged's socket .*/elsewhere \(mode 0777\)" \
	--munge-socket "$DIR/at/elsewhere/socket" --shim "$DAEMON"
DAEMON=$IOCOM_BUILD/iocomd

# --- files put there ---
echo "root's" >"$DIR/precious"
for file in iocom.db iocom.db-wal profile.db counting; do
	fresh && ln -s "$DIR/precious" "$STATE/$file"
	refuses "$file is a link" "$file is not a plain file"
	fresh && ln "$DIR/precious" "$STATE/$file"
	refuses "$file is a hard link" "$file is not a plain file"
	fresh && mkfifo "$STATE/$file"
	refuses "$file is a fifo" "$file is not a plain file"
	fresh && : >"$STATE/$file" && chmod 600 "$STATE/$file" && chown $MALLORY "$STATE/$file"
	refuses "$file of another owner" "$file is not root's alone"
	fresh && : >"$STATE/$file" && chmod 640 "$STATE/$file"
	refuses "$file that others may read" "$file is not root's alone"
done
fresh && ln -s "$DIR/precious" "$STATE/state.lock"
refuses "the lock is a link" 'cannot write in the state directory'
tap_is "what the links led to is as it was" "$(cat "$DIR/precious")" "root's"
fresh && head -c 100000 /dev/urandom >"$STATE/iocom.db" && chmod 600 "$STATE/iocom.db"
refuses "a journal of random bytes" 'journal.*not a database'

# --- a journal and records with everything wrong ---
fresh
mkdir -m 700 "$DIR/canary"
echo alive >"$DIR/canary/start"
AT=$DIR/at
mkdir -p "$AT/solo"
agent_solo() {
	"$IOCOM_BUILD/iocomd" --name solo --port 7970 --run-dir "$RUN" --state-dir "$STATE" \
		--shim "$IOCOM_BUILD/iocom-shim" --munge-socket /nowhere/munge >"$DIR/agent/log" 2>&1 &
	solo=$!
	PIDS+=($solo)
	until_true 30 test -S "$RUN/iocom.sock"
}
solo_stop() {
	kill $solo
	wait $solo
}
agent_solo
tap_is "an agent of its own runs a job" "$(IOCOM_RUN_DIR=$RUN "$iocom" run -- echo ran)" ran
solo_stop
tap_true "wild rows are put into its journal" $PYTHON - "$STATE/iocom.db" "$DIR/canary" <<'EOF_PYTHON'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
orders = db.execute('SELECT orders FROM target').fetchone()[0]
big = 2 ** 63 - 1
names = ['../../canary', sys.argv[2], 'a/b', '.', '..', '', 'x' * 100000, 'a\nb: all is well', 'solo-1-\x1b[2J', '\udcff'.encode('utf-8', 'surrogateescape'), 'solo-0-99999999999999999999999']
wild = [-1, 0, 1 << 40, big, -big - 1]
n = 0
for name in names:
    for value in wild:
        for state in ('running', 'starting', 'exited', 'no\nsuch', None, 7):
            n += 1
            job = name if n % 3 else f'wild-{n}'
            for blob in (orders, b'', b'\xdf\xff\xff\xff\xff', b'\x91' * 100000, None)[n % 5:n % 5 + 1]:
                db.execute('INSERT OR IGNORE INTO target(job,home,node,uid,class,command,policy,state,submit_ns,start_ns,end_ns,kind,value,pid,cgroup_id,report_due,orders,report)'
                           ' VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)',
                           (job, name, 'solo', value, 'c\x1b]0;x\x07', 'line\nline', 'best', state, value, value, value, value, value, value, value, n % 2, blob, blob))
                db.execute('INSERT OR IGNORE INTO home(job,uid,class,command,policy,node,state,submit_ns,start_ns,end_ns,kind,value,pid,place) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)',
                           (job, value, 'c', 'line\nline', 'best', name, state, value, value, value, value, value, value, 'no json'))
db.execute("INSERT OR REPLACE INTO mark VALUES('solo-0', ?)", (big,))
db.execute("INSERT OR REPLACE INTO nonce VALUES('x', ?, ?)", (-1, -1))
for fact in ('a', 'b'):
    db.execute('INSERT OR REPLACE INTO fact VALUES(?, ?)', (fact, float('inf')))
db.commit()
EOF_PYTHON
J=$STATE/jobs
mkdir "$J/solo-a-1" "$J/solo-a-2" "$J/solo-a-3" "$J/.hidden" "$J/a b" "$J/solo-a-4"
ln -s "$DIR/canary" "$J/solo-link-1"
: >"$J/solo-file-1"
mkfifo "$J/solo-fifo-1" "$J/solo-a-1/start" "$J/solo-a-1/exit"
ln -s /etc/shadow "$J/solo-a-2/exit"
ln -s "$DIR/canary/start" "$J/solo-a-2/start"
head -c 1000000 /dev/urandom >"$J/solo-a-3/start"
mkdir "$J/solo-a-4/exit" "$J/solo-a-4/start"
agent_solo
tap_true "the agent starts all the same" kill -0 $solo
tap_is "it runs jobs" "$(IOCOM_RUN_DIR=$RUN timeout 20 "$iocom" run -- echo again)" again
tap_true "its list is a document" eval "IOCOM_RUN_DIR=$RUN '$iocom' jobs --all --json | jq -e '.jobs | length > 0'"
tap_is "its list gives a terminal no orders" \
	"$(IOCOM_RUN_DIR=$RUN "$iocom" jobs --all | grep -c $'[\x01-\x08\x0b-\x1f\x7f]')" 0
tap_is "nor does its log" "$(grep -c $'[\x01-\x08\x0b-\x1f\x7f]' "$DIR/agent/log")" 0
tap_is "no line of its log was written by a name" "$(grep -vcE '^....-..-..T..:..:..\....Z iocomd: ' "$DIR/agent/log")" 0
sleep 1.2 # it runs its periodic work once more
tap_true "it goes on" kill -0 $solo
tap_is "what the links and names led to is as it was" "$(cat "$DIR/canary/start")" alive
solo_stop
row "a journal with 330 wild rows, records that are none" yes -
attack_done
