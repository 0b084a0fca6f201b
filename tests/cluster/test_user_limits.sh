#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# A fork bomb and a memory hog at another node harm only their own user's jobs there: another
# user's job and the agent go on, the owner is told, an agent that restarts meanwhile finds the
# job. Two agents on this machine. What the jobs try is bounded: 300 forks, 400 MiB.
set -uo pipefail
cd "$(dirname "$0")/../.."
. tests/lib/tap.sh
. tests/lib/pair.sh
pair_begin
pair_munged n1
pair_munged n2
chmod 1777 "$PAIR"
# A period of 1 s: on a loaded machine a node must not count as silent too soon.
limits=(--period 1 --user-tasks-max 60 --user-memory-mb 128 --min-uid 1)
pair_agent n1 n2 --period 1
pair_agent n2 n1 "${limits[@]}"
heard() { until_true 15 pair_sees n1 2 && until_true 15 pair_sees n2 2; }
tap_true "two agents know each other" heard
runs_only() { [ "$(pair_on n2 jobs --json | jq -r '.jobs[] | select(.state=="running") | .uid')" = "$1" ]; } # UID
counted() { [ "$(pair_count n2 "$1")" = "$2" ]; }                                   # COUNTER NUMBER
tells() { grep -qE "$1" <<<"$(pair_on n1 jobs --all --json | jq -r '.jobs[].text')"; } # REGEX: home
other_user() { # NODE IOCOM-ARGUMENTS...: as daemon
	local node=$1
	shift
	IOCOM_RUN_DIR=$PAIR/$node/run timeout 60 setpriv --reuid 1 --regid 1 --clear-groups \
		sh -c 'cd / && exec "$@"' sh "$IOCOM_BUILD/iocom" "$@"
}
cat >"$PAIR/bomb" <<'P'
import os, signal, sys, time
children, refused = [], 0
for i in range(300):
    try:
        pid = os.fork()
    except OSError:
        refused += 1
        continue
    if pid == 0:
        time.sleep(120)
        os._exit(0)
    children.append(pid)
with open(sys.argv[1] + ".part", "w") as f:
    f.write(f"{len(children)} {refused}")
os.rename(sys.argv[1] + ".part", sys.argv[1])
for i in range(1200):
    if os.path.exists(sys.argv[2]):
        break
    time.sleep(0.05)
for pid in children:
    os.kill(pid, signal.SIGKILL)
P
cat >"$PAIR/hog" <<'P'
pieces = []
for i in range(400):
    pieces.append(bytes([i % 255 + 1]) * (1 << 20))
print("unharmed")
P

# --- tasks ---
pair_user n1 run --node n2 -- python3 "$PAIR/bomb" "$PAIR/made" "$PAIR/go" >"$PAIR/out" 2>"$PAIR/err" &
bomb=$!
tap_true "a fork bomb runs at the other node" until_true 30 test -e "$PAIR/made"
tap_is "it gets 60 tasks with itself, the rest of 300 is refused" "$(cat "$PAIR/made")" "59 241"
heard
tap_is "another user's job there forks as it likes" \
	"$(other_user n1 run --node n2 -- sh -c 'for i in 1 2 3 4 5; do sh -c : || exit; done; echo fine' 2>&1)" fine
groups() { find /sys/fs/cgroup -path "*/$PAIR_SCOPE/n2/guests/user@65534/n1-*" -prune -type d | wc -l; }
tap_calc "its cgroup is below its user's, wherever there is a hierarchy" "$(groups) >= 1"
pair_stop n2
pair_agent n2 n1 "${limits[@]}"
tap_true "the agent there restarts and knows the job" until_true 15 \
	runs_only 65534
: >"$PAIR/go"
wait "$bomb"
tap_is "the bomb ends" "$?" 0
tap_like "its owner is told" "$(cat "$PAIR/err")" \
	'^iocom run: node n2 refused [0-9]+ forks of (the job|your jobs); your jobs there may have 60 tasks together \(user_tasks_max\)$'
tap_true "and the journal of its home" until_true 20 \
	tells 'refused [0-9]+ forks of '
tap_true "the agent counted it" until_true 10 counted forks_refused 1
tap_is "and no lack of memory" "$(pair_count n2 jobs_oom)" 0
tap_is "nothing is left of the user's cgroup" "$(find /sys/fs/cgroup -path "*/$PAIR_SCOPE/n2/guests/user@*" -type d | wc -l)" 0

# --- memory ---
rm -f "$PAIR/go"
heard
# shellcheck disable=SC2016
other_user n1 run --node n2 -- sh -c 'until [ -e "$1" ]; do sleep 0.05; done; echo fine' sh "$PAIR/go" >"$PAIR/other" 2>&1 &
other=$!
tap_true "another user's job runs there" until_true 15 \
	runs_only 1
heard
tap_is "a memory hog is killed" "$(pair_user n1 run --node n2 -- python3 "$PAIR/hog" 2>"$PAIR/err"; echo $?)" 137
tap_is "its owner is told" "$(cat "$PAIR/err")" "iocom run: out of memory on node n2: the kernel killed 1 process of the job; your jobs there may use 128 MiB together (user_memory_mb)"
tap_true "the agent counted it" until_true 10 counted jobs_oom 1
: >"$PAIR/go"
wait "$other"
tap_is "the other user's job went on" "$? $(cat "$PAIR/other")" "0 fine"
tap_true "and both agents" heard
tap_is "root's jobs have no limit" "$(pair_on n2 run --node n2 -- python3 "$PAIR/hog" 2>&1)" unharmed

# --- limits that do not hold ---
doctor() { pair_on n2 doctor --json 2>/dev/null | jq -r '.checks[] | select(.check=="user-limits") | .state + ": " + .says'; }
tap_is "iocom doctor tells the limits" "$(doctor)" "ok: one user's jobs together: 60 tasks, 128 MiB of memory"
tap_is "the log is silent about them" "$(grep -c 'does not hold' "$PAIR/n2/log")" 0
pair_stop n2
if awk '$3 == "cgroup" && $4 ~ /pids/ { found = 1 } END { exit !found }' /proc/mounts; then
	tasks=$(awk '$3 == "cgroup" && $4 ~ /pids/ { print $2; exit }' /proc/mounts)/$PAIR_SCOPE/n2
	tap_true "the controller of tasks can be taken away" until_true 15 pair_empty "$tasks"
	eval "all_$(declare -f pair_groups)"
	pair_groups() { all_pair_groups | grep -vxF "${tasks%/"$PAIR_SCOPE"/n2}"; }
	pair_agent n2 n1 "${limits[@]}"
	pair_groups() { all_pair_groups; }
	tap_is "an agent without the controller of tasks logs it once" "$(grep -c 'user_tasks_max does not hold' "$PAIR/n2/log")" 1
	tap_is "and nothing of memory" "$(grep -c 'user_memory_mb does not hold' "$PAIR/n2/log")" 0
	tap_is "iocom doctor says what is missing" "$(doctor)" "degraded: nothing keeps one user's jobs from using all tasks of this machine"
	tap_is "jobs run all the same" "$(pair_user n2 run --node n2 -- echo fine 2>&1)" fine
	tap_is "the log has still one line" "$(grep -c 'user_tasks_max does not hold' "$PAIR/n2/log")" 1
else
	tap_skip "an agent without the controller of tasks" "it cannot be taken away here"
fi

# --- requests from another node ---
pair_stop n2
pair_agent n2 n1 --period 1 --user-requests-per-s 1 --min-uid 1
tap_true "they know each other again" heard
often() { # a user of n1 asks n2 ten times at once
	for _ in 1 2 3 4 5 6 7 8 9 10; do pair_user n1 jobs --json; done 2>/dev/null |
		jq -r '.missing[] | "\(.node) \(.silent) \(.reason)"' | sort | uniq -c
}
tap_like "more requests than a user may make: refused there, and said" "$(often)" \
	'^ +[1-9][0-9]* n2 false you ask more often than one user may \(user_requests_per_s\)'
tap_calc "and counted there" "$(pair_count n2 requests_refused_rate) > 0"
tap_is "not here" "$(pair_count n1 requests_refused_rate)" 0
tap_is "another node's root asks nothing: said once, and the list is whole" \
	"$(pair_on n1 jobs --json 2>"$PAIR/err" | jq -c '[.missing[] | [.node, .silent]]'; cat "$PAIR/err")" \
	'[["n2",false]]'$'\n'"iocom jobs: n2: other nodes' root may ask nothing there (allow_root)"
tap_true "which is no failure" pair_on n1 jobs
tap_is "a bad value is refused" "$("$IOCOM_BUILD/iocomd" --user-tasks-max many 2>&1 | head -n 1)" \
	"iocomd: --user-tasks-max: expected a number of tasks from 1 to 4194304, auto or none, not 'many'"
tap_is "each agent ended with 0" "$(cat "$PAIR/bad" 2>/dev/null)" ""
tap_done
