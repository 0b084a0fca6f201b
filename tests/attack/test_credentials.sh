#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Forged starts of jobs and forged messages between agents. Two agents, like those of two
# machines: they share a key, but each has its own munged, which remembers only what it decoded.
set -uo pipefail
cd "$(dirname "$0")/../.."
. tests/lib/tap.sh
. tests/attack/lib.sh
munge_up alpha
munge_up beta alpha
munge_up mallory # another key
export FORGE_OTHER_MUNGE=$DIR/mallory/munge
agent_up alpha 7920 --listen 127.0.0.1 --peers 127.0.0.1:7924
agent_up beta 7924 --listen 127.0.0.1 --peers 127.0.0.1:7920,127.0.0.1:7928 --min-uid 1 --deny-users bin \
	--administrators $VICTIM
tap_true "two agents hear of each other" until_true 10 sees alpha 2
until_true 10 sees beta 2
mkdir -m 1777 "$DIR/marks"
N=0
forged() { # HOW [FILE]
	N=$((N + 1))
	"$TOOLS/forge_start" "$1" "$DIR/alpha/run" beta $VICTIM "$DIR/marks/$N" ${2+"$2"}
}
forge() { # ATTACK HOW PATTERN
	attack "$1" beta "$3" forged "$2"
}

# This lease is taken now and used when it is over, while the rest runs at beta.
log_mark alpha
"$TOOLS/forge_start" stale "$DIR/alpha/run" alpha $VICTIM "$DIR/marks/stale" >"$DIR/stale" 2>&1 &
stale=$!

# --- forged starts ---
tap_like "a start as it should be runs" "$(forged none)" '^started, exit 0 0'
tap_is "and the job did its work" "$(ls "$DIR/marks")" 1
rm -f "$DIR/marks"/*
for field in argv env executable cwd umask limits hard_limits closed class grace; do
	forge "start: $field changed" $field 'its hash differs'
done
forge "start: job changed" job 'the stream is for job .*, the message for job'
forge "start: nonce changed" nonce 'holds no lease for job'
forge "start: node changed" node 'is meant for node another'
forge "start: job and nonce of another lease" swap '(made for another job|the stream is for job)'
forge "start: credential of another purpose" type 'made for another purpose'
forge "start: credential with another hash" hash 'its hash differs'
forge "start: credential of another user" uid "was submitted by uid $VICTIM, not by uid $MALLORY"
forge "start: no credential" none-at-all 'needs a credential'
forge "start: a credential of nonsense" garbage 'refuses the credential'
forge "start: one byte of the credential changed" changed '(not from this cluster|refuses the credential)'
forge "start: credential of another key" key 'not from this cluster'
forge "start: in clear, as older clients did" clear 'in clear'
forge "start: with another key of the stream" stranger 'no job for that key'
forge "start: credential too old" expired 'clock is about|s old by this node'
wait $stale
refused=$([ $? -eq 1 ] && echo yes || echo no)
judge "start: a lease that is over" alpha 'holds no lease for job .* expired' "$refused" "$(cat "$DIR/stale")"
attack "start: another user's lease, by the agent's own socket" alpha "was submitted by uid $VICTIM, not by uid $MALLORY" \
	"$TOOLS/forge_start" local "$DIR/alpha/run" alpha $VICTIM "$DIR/marks/local"
forge "a directory whose name writes lines of its own" line 'working directory /nowhere[?]2038'
tap_is "and no control character is in the log" "$(grep -c $'[\x01-\x08\x0b-\x1f\x7f]' "$DIR/beta/log")" 0
tap_is "nothing of all this ran" "$(ls "$DIR/marks")" ""

# --- replay ---
forged capture "$DIR/captured" >/dev/null
rm -f "$DIR/marks"/*
attack "replay: the same start on the same host" beta 'holds no lease for job' \
	"$TOOLS/forge_start" send 7926 beta 0 - "$DIR/captured"
attack "replay: the same start on another host" alpha 'no job for that key' \
	"$TOOLS/forge_start" send 7922 alpha 0 - "$DIR/captured"
log_mark beta
out=$(forged again)
refused=$(grep -q 'used before (a replay)' <<<"$out" && echo yes || echo no)
SEEN[beta]=$((SEEN[beta] + 1)) # the first one's refusal: its hash
judge "replay: a credential already opened, lease still there" beta 'used before \(a replay\)' "$refused" "$out"
tap_is "nothing of this ran either" "$(ls "$DIR/marks")" ""

# --- requests to beta's owner, of a user who may make them ---
owner() { # HOW WORD...: the last one that is sent is refused
	local out
	out=$(IOCOM_RUN_DIR=$DIR/alpha/run IOCOM_MUNGE_SOCKET=$DIR/alpha/munge ASK_KEPT=$DIR/kept \
		python3 tests/cluster/ask_raw.py beta "$1" owner "${@:2}")
	echo "$out"
	[ "$(tail -n 1 <<<"$out")" = answered ]
}
owner_state() { at beta "$iocom" owner --json | jq -r .state; }
refused_by_beta="refused a request of a user at node alpha \\(owner\\): "
tap_is "a request as it should be" "$(owner kept close) $(owner_state)" "answered closed"
at beta "$iocom" owner open >/dev/null
attack "owner: captured, and sent once more" beta "$refused_by_beta.*used before \\(a replay\\)" owner kept close
attack "owner: captured on its way to another node" beta "${refused_by_beta}the request is for node n1" owner addressed close
attack "owner: whose credential is for another node" beta "$refused_by_beta.*made for another node" owner node close
attack "owner: for an earlier start of the agent" beta "$refused_by_beta.*earlier start of the agent" owner boot close
attack "owner: of 200 s ago" beta "$refused_by_beta.*made -20[0-9] s from now" owner old close
attack "owner: for any start of the agent" beta "owner: refused nobody@alpha .*must name the start" owner unbound close
tap_is "beta is open after all that" "$(owner_state)" open

# --- which users ---
users() { N=$((N + 1)); "$TOOLS/forge_start" none "$DIR/alpha/run" beta "$1" "$DIR/marks/$N"; }
attack "root of another node" beta "jobs of other nodes' root" users 0
attack "a user of deny_users" beta 'user bin is not let in' users 2
attack "a uid that is nobody's here" beta 'uid 3999999 is unknown' users 3999999
tap_like "a user as he should be" "$(users $VICTIM)" '^started'
agent_down beta
agent_up beta 7924 --listen 127.0.0.1 --peers 127.0.0.1:7920,127.0.0.1:7928
until_true 10 sees beta 2
until_true 10 sees alpha 2
attack "a uid below min_uid" beta "uid $MALLORY is below 1000" users $MALLORY

# --- messages of agents ---
FORGE_JOB=$(at beta as $VICTIM "$iocom" run --detach --node beta -- sleep 600)
export FORGE_JOB
coproc CONTROL { "$TOOLS/forge_message" control 7924 "$DIR/beta/munge" beta; }
tell() { # HOW
	local out
	echo "$1" >&"${CONTROL[1]}"
	read -r out <&"${CONTROL[0]}"
	echo "$out"
	[[ $out == *": answered" ]]
}
message() { attack "message: $1" beta "$3" tell "$2"; } # ATTACK HOW PATTERN
tap_is "a message as it should be is answered" "$(tell true)" "true: answered"
message "the same once more" twice 'it was here before \(a replay\)'
message "the same number in a fresh seal" id 'was here before'
message "not sealed" plain 'not a message of iocom'
message "of the version without sessions" old 'runs an older version of iocom'
message "one byte changed" changed 'was not made by node mallory in this session'
tap_is "the agent's own answer, sent back, is not obeyed" "$(tell reflect)" "reflect: no answer"
message "held back for 100 s" held "node mallory sent it (99|10[0-9]) s before this machine's time"
message "meant for another node" to "for node 'another'"
message "said to be from the node itself" own "speaks in the name of node 'beta'"
message "of an unknown type" type "refused a 'format' message"
message "without a body" body 'without a body'
message "without a head" head 'incomplete message'
message "an empty seal" empty 'refused a control message'
message "larger than any" large ''
message "greeting: by a user" user "made by uid $VICTIM, not by root"
message "greeting: by another cluster" key 'refused a greeting'
message "greeting: the same once more" hello 'credential replayed'
message "greeting: the halves of two" mixed 'not made by who made its credential'
message "greeting: for another node" another "for node 'another'"
message "greeting: by the node itself" self 'two nodes call themselves beta'
message "greeting: versions that nobody speaks" versions 'neighbouring versions'
message "of a session that does not exist" session 'of an unknown session'
tap_is "after all that a message is answered" "$(tell true)" "true: answered"
# It is answered: other ends in the same message may be true.
foreign() {
	tell done >"$DIR/foreign"
	! at beta "$iocom" jobs --all --json | jq -e --arg j "$FORGE_JOB" '.jobs[] | select(.job == $j and .state == "running")' >/dev/null
}
claims() { # it is answered with a refusal
	tell claim >"$DIR/claims"
	! at beta "$iocom" jobs --all --json | jq -e --arg j "$FORGE_JOB" '.jobs[] | select(.job == $j and .state == "running")' >/dev/null
}
attack "message: a kill in a user's name, without the user's credential" beta "refused a request of a user at node mallory \(kill\): " claims
attack "message: ends that came together, one of another node's job" beta "mallory reports an end of job $FORGE_JOB" foreign
at beta "$iocom" kill "$FORGE_JOB"
agent_down beta
agent_up beta 7924 --listen 127.0.0.1 --peers 127.0.0.1:7920,127.0.0.1:7928
tap_is "after a restart a message is answered" "$(tell true)" "true: answered"
message "an old number, after the agent's restart" id 'was here before'
pid=$CONTROL_PID
exec {CONTROL[1]}>&-
wait "$pid"

# --- bulletins ---
coproc BULLETIN { "$TOOLS/forge_message" bulletin 7928 "$DIR/beta/munge" mallory; }
here() { at beta "$iocom" nodes --json | jq -e '.nodes[] | select(.name=="mallory")' >/dev/null; }
publish() { # HOW
	local out
	echo "$1" >&"${BULLETIN[1]}"
	read -r out <&"${BULLETIN[0]}"
	echo "$out"
	sleep 0.1
	! here
}
bulletin() { # ATTACK HOW PATTERN
	local refused=no out
	log_mark beta
	out=$(publish "$2") && refused=yes
	judge "bulletin: $1" beta "$3" $refused "$out"
}
bulletin "not sealed" plain 'refused a bulletin: it is not a message'
bulletin "one byte changed" changed 'in the name of node mallory: it was not made by that node'
# What is refused for the same reason again is counted: the log has it once a minute, then less often.
again() { # ATTACK HOW COUNTER
	local before
	before=$(counter beta "$3")
	bulletin "$1" "$2" ''
	counted() { [ "$(counter beta "$1")" -gt "$2" ]; }
	tap_true "... and counted ($3)" until_true 5 counted "$3" "$before"
}
again "the number of a later one" number bulletins_refused_forged
bulletin "made 100 s ago" late 'refused a bulletin of node mallory: made 1?[01][0-9] s before'
bulletin "nonsense in a good seal" nonsense 'it is not a message of iocom'
bulletin "of another version" version "refused a bulletin of node mallory: it runs another version"
again "an empty seal" empty bulletins_refused_garbage
# These are counted: a bulletin of an epoch whose key is not here is nobody's fault.
unkeyed() { at beta "$iocom" nodes --json | jq .counters.bulletins_refused_key; }
before=$(unkeyed)
for how in key name; do publish $how >/dev/null; done
two_unkeyed() { [ "$(unkeyed)" -ge $((before + 2)) ]; }
tap_true "sealed with another key, and in the name of another node: not heard" until_true 5 two_unkeyed
tap_true "... and no node came in by them" eval '! here'
publish true >/dev/null
tap_true "a bulletin as it should be brings its node in" until_true 60 here
bulletin_again() {
	log_mark beta
	publish twice >/dev/null
	until_true 5 eval "log_new beta | grep -q 'a bulletin in the name of node mallory: it was here before'"
}
tap_true "bulletin: the same once more is refused" bulletin_again
pid=$BULLETIN_PID
exec {BULLETIN[1]}>&-
wait "$pid"
attack_done
