#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# One cluster for its users: jobs that were submitted at n1 are listed, waited for, explained,
# attached to and killed at n3 by the same user, and by nobody else from anywhere; short names;
# requests that prove nothing; a node that is down; readings of another node; 80 columns.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lib/tap.sh disable=SC1091
. tests/lib/tap.sh
# shellcheck source=tests/lib/cluster.sh disable=SC1091
. tests/lib/cluster.sh
cluster_up --nodes 3 --disk 0
for n in n1 n2 n3; do tap_true "$n hears of the others" until_true 15 sees $n 3; done
as() { # USER NODE COMMAND...
	timeout 60 "$TESTBED" exec "$2" --user "$1" -- sh -c "cd / && ${*:3}"
}
mine() { as nobody "$@"; }
other() { as games "$@"; }
told() { "$@" 2>&1; echo "status $?"; }
ended() { mine n1 iocom jobs --here --all --json | jq -e --arg j "$1" '.jobs[] | select(.job == $j and .end_ns > 0)'; }
state() { mine "$1" iocom jobs --all --json | jq -r --arg j "$2" '.jobs[] | select(.job == $j) | .state'; }

# --- jobs of n1, seen from n3 ---
here=$(mine n1 iocom run --node n1 --detach -- sleep 600)
there=$(mine n1 iocom run --node n2 --detach -- "sh -c 'echo begun; sleep 601'")
foreign=$(other n1 iocom run --node n1 --detach -- sleep 602)
runs() { [ "$(state n3 "$1")" = running ]; }
tap_true "a job of n1 runs, says n3" until_true 10 runs "$here"
tap_true "and one of n1 at n2" until_true 10 runs "$there"
tap_is "n3 lists both once, with home and node" \
	"$(mine n3 iocom jobs --json | jq -c '[.jobs[] | [.job, .home, .node]] | sort')" \
	"[[\"$here\",\"n1\",\"n1\"],[\"$there\",\"n1\",\"n2\"]]"
tap_is "nothing is missing" "$(mine n3 iocom jobs --json | jq -c '[.missing, .left_out]')" "[[],0]"
tap_is "--here: only those of this node" "$(mine n3 iocom jobs --here --json | jq -c .jobs)" "[]"
tap_is "the guest and the home agree" \
	"$(for n in n1 n2 n3; do mine $n iocom jobs --json | jq -c '[.jobs[] | [.job, .state, .home, .node]] | sort'; done | sort -u | wc -l)" 1
tap_like "explain at n3: in words" "$(mine n3 iocom explain "$there")" '^You asked for n2; least-delay would'
tap_is "explain --json at n3 and at n1: the same" \
	"$(mine n3 iocom explain --json "$there" | jq -S .place | cksum)" "$(mine n1 iocom explain --json "$there" | jq -S .place | cksum)"
mine n3 "timeout 5 iocom attach $there" >"$SCRATCH/attached" 2>&1 &
tap_true "attach at n3: its output" until_true 10 grep begun "$SCRATCH/attached"
mine n3 iocom wait "$there" >"$SCRATCH/waited" 2>&1 9>&- &
waiter=$!

# --- short names ---
number=${there##*-}
tap_is "kill -0 by its number" "$(told mine n3 iocom kill -0 "$number")" "status 0"
tap_is "by home and number" "$(told mine n3 iocom kill -0 "n1-$number")" "status 0"
tap_is "of another home: there is none" "$(told mine n3 iocom kill -0 "n2-$number")" \
	"iocom kill: no job of yours has the number $number at node n2; \`iocom jobs --all\` lists them
status 1"
twin=$(mine n2 iocom run --node n2 --detach -- sleep 603)
while [ "${twin##*-}" -lt "$number" ]; do
	mine n2 iocom kill -KILL "$twin"
	twin=$(mine n2 iocom run --node n2 --detach -- sleep 603)
done
tap_is "two jobs have the number" "${twin##*-}" "$number"
tap_true "both run" until_true 10 runs "$twin"
both=$(told mine n3 iocom kill -KILL "$number")
tap_like "the number alone is refused" "$both" "^iocom kill: '$number' may be .*: write the whole name$"
tap_is "with both candidates" "$(grep -oE "n[12]-[0-9a-f]{8}-$number" <<<"$both" | sort)" "$(printf '%s\n' "$there" "$twin" | sort)"
tap_is "status 1, and both run" "$(tail -n 1 <<<"$both") $(state n3 "$there") $(state n3 "$twin")" "status 1 running running"
tap_is "n2-NUMBER is one of them" "$(told mine n3 iocom kill -KILL "n2-$number")" "status 0"
tap_is "which n1 waits for: its status" "$(told mine n1 iocom wait "$twin")" "status 137"
tap_is "now the number means the one that runs" "$(told mine n2 iocom kill -USR1 "$number")" "status 0"
wait "$waiter"
tap_is "the wait at n3 ends with the job's status" "$? $(cat "$SCRATCH/waited")" "$((128 + $(kill -l USR1))) "
tap_true "home has its end" until_true 10 ended "$there"
tap_is "wait --json at n3, of a job that has ended" \
	"$(mine n3 iocom wait --json "$there" | jq -c '[.job, .home, .node, .state]')" "[\"$there\",\"n1\",\"n2\",\"killed\"]"
tap_is "last is this node's: n3 has none" "$(told mine n3 iocom explain last)" \
	"iocom explain: no job of yours was submitted at node n3
status 1"
tap_like "a job that never was: at its home" "$(told mine n3 iocom wait "n1-${here#n1-}9")" 'no job of yours named .* at node n1.*|status 125'
tap_like "of a node that never was" "$(told mine n3 iocom kill n9-0badcafe-1)" 'no job of yours named n9-0badcafe-1'

# --- another user ---
tap_is "another user does not see it, from any node" \
	"$(for n in n1 n2 n3; do other $n iocom jobs --all --json | jq -r '.jobs[].job'; done | sort -u)" "$foreign"
for n in n1 n2 n3; do
	tap_like "nor kill it at $n" "$(told other $n iocom kill -KILL "$here")" '^iocom kill: no job of yours named'
	tap_like "nor wait for it at $n" "$(told other $n iocom wait "$here")" '^iocom wait: no job of yours named'
	tap_like "nor have it explained at $n" "$(told other $n iocom explain "$here")" '^iocom explain: no job of yours named'
	tap_like "nor attach to it at $n" "$(told other $n iocom attach "$here")" '^iocom attach: no job of yours named'
done
tap_is "its number means nothing to them" "$(told other n3 iocom kill "n1-${here##*-}" | grep -c 'no job of yours has the number')" 1
tap_is "it runs" "$(state n3 "$here")" running
tap_is "root sees all, where nodes let it" "$(on n3 iocom jobs --json | jq -r '[.jobs[].user] | unique | join(" ")')" "games nobody"

# --- requests that prove nothing ---
raw() { mine n3 "python3 $PWD/tests/cluster/ask_raw.py $*" 2>&1; }
logged() { grep -c "refused a request of a user at node n3" "$("$TESTBED" status --json | jq -r .state_dir)/n1/agent.log"; }
tap_is "a request as it should be" "$(raw n1 nothing)" answered
tap_like "without a credential" "$(raw n1 none kill "$here")" 'refuses the credential: it is none'
tap_like "with junk for one" "$(raw n1 junk kill "$here")" 'MUNGE refuses the credential'
tap_like "made for another purpose" "$(raw n1 purpose kill "$here")" 'made for another purpose'
tap_like "made for another node" "$(raw n2 node)" 'made for another node'
tap_like "meant for another node" "$(raw n2 addressed)" 'the request is for node n1'
tap_like "with another nonce" "$(raw n1 nonce kill "$here")" 'made for another nonce'
tap_like "of another request" "$(raw n1 hash kill "$here")" 'its hash differs'
tap_like "no request at all" "$(raw n1 short)" 'malformed'
tap_is "the same twice: once" "$(raw n1 twice jobs | sed 's/.*used before.*/replay/')" answered$'\n'replay
tap_is "a request that is not for other nodes" "$(raw n1 nothing status)" "this request is not for other nodes"
tap_is "nor a start" "$(raw n1 nothing place)" "this request is not for other nodes"
tap_like "nor a wait that keeps an agent busy" "$(raw n1 nothing wait "$here")" 'does not wait'
tap_is "a uid in the request is nobody's" \
	"$(as games n3 "python3 $PWD/tests/cluster/ask_raw.py n1 nothing kill $here" 2>&1 | grep -c 'no job of yours')" 1
tap_is "after all that it runs" "$(state n3 "$here")" running
tap_calc "the log of n1 has them" "$(logged) >= 5"
tap_is "they are counted" "$(on n1 iocom nodes --json | jq '.counters.forwarded_refused >= 5 and .counters.forwarded_served >= 5')" true

# --- top -H ---
reading=$(mine n3 iocom top --json -n 1 -d 0.5 -H n1)
tap_is "top -H n1: of n1, the user's own tasks only" "$(jq -c '[.node, ([.tasks[].uid] | unique)]' <<<"$reading")" '["n1",[65534]]'
tap_is "and its job is there" "$(jq -r --arg j "$here" '[.tasks[] | select(.job == $j) | .comm] | unique | join(" ")' <<<"$reading")" sleep
tap_is "as root: more" "$(on n3 iocom top --json -n 1 -d 0.3 -H n1 | jq '[.tasks[].uid] | unique | contains([0, 65534])')" true
tap_is "of this node itself: as without it" "$(mine n3 iocom top --json -n 1 -d 0.2 -H n3 | jq -r .node)" n3
tap_is "of none" "$(told mine n3 iocom top -b -n 1 -H n9)" "iocom top: no node named n9 is known here; \`iocom nodes\` lists them
status 1"
tap_is "too rarely" "$(told mine n3 iocom top -b -n 1 -d 61 -H n1 | tail -n 1)" "status 2"

# --- 80 columns ---
widest() { awk '{ if (length > n) n = length } END { print n + 0 }'; }
tap_calc "explain: no line is longer than 80" "$(mine n3 iocom explain "$here" | widest) <= 80"
tap_calc "nodes: neither" "$(mine n3 iocom nodes | widest) <= 80"
tap_like "nodes --wide: all columns" "$(mine n3 iocom nodes --wide)" 'CAPACITY +LEFT s'
tap_is "completion of jobs, from any node" "$(mine n3 iocom complete running | sort | paste -sd ' ')" "$(printf '%s\n' "$here" last | sort | paste -sd ' ')"
tap_is "and of nodes" "$(mine n3 iocom complete nodes | sort | paste -sd ' ')" "n1 n2 n3"

# --- a node that is down ---
agent=$("$TESTBED" status --json | jq '.nodes[] | select(.name == "n1") | .agent_pid')
kill -STOP "$agent"
told mine n3 iocom jobs --json >"$SCRATCH/down" 2>"$SCRATCH/down.err"
tap_is "a node that does not answer: 3" "$(tail -n 1 "$SCRATCH/down")" "status 3"
tap_is "it is named" "$(grep -cE '^iocom jobs: n1 (did not answer in 1 s|is silent); its jobs are missing$' "$SCRATCH/down")" 1
tap_is "in the document, too" "$(grep '^{' "$SCRATCH/down" | jq -c '[.missing[] | [.node, .silent]]')" '[["n1",true]]'
silent() { mine n3 iocom nodes --json | jq -e '.dropped[] | select(.name == "n1")'; }
tap_true "after some periods it is known to be silent" until_true 20 silent
tap_is "the list says so at once" "$(told mine n3 iocom jobs 2>&1 | grep -cE 'n1 is silent; its jobs are missing')" 1
tap_is "top, too" "$(told mine n3 iocom top -H n1 -b -n 1)" "iocom top: node n1 is silent
status 1"
tap_is "kill names it" "$(told mine n3 iocom kill "$here")" "iocom kill: node n1, where job $here was submitted, is silent
status 1"
kill -CONT "$agent"
tap_true "it is back" until_true 20 sees n3 3
tap_is "its jobs, too" "$(told mine n3 iocom kill -KILL "$here")" "status 0"
tap_is "and the end is heard from afar" "$(told mine n2 iocom wait "$here")" "status 137"
other n1 iocom kill -KILL "$foreign"
tap_done
