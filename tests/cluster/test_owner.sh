#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# An owner decides what a node's guests may use: at once, whatever other nodes believe, over a
# restart, by whom the node's settings allow, and by no forged request.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/pair.sh
pair_begin
OUT=$PAIR/out
mkdir -m 777 "$OUT"
pair_munged n1 && pair_munged n2 || tap_skip_all "munged does not start"
chmod 755 "$PAIR"/munge-n*
agent2() { pair_agent n2 n1 --administrators 65534 --user-jobs-max 100; }
pair_agent n1 n2 && agent2 || tap_skip_all "the agents do not start"
tap_true "the two agents see each other" until_true 20 pair_sees n1 2
tap_true "both ways" until_true 20 pair_sees n2 2

owner() { pair_on n2 owner "$@" 2>&1; }
said() { pair_on "$1" owner --node n2 --json | jq -r "$2"; } # NODE FIELD
knows() { [ "$(pair_on n1 nodes --json | jq -r '.nodes[] | select(.name == "n2") | .owner')" = "$1" ]; }
guest() { pair_user n1 run --node n2 "$@" 2>&1; }
guests() { pair_on n2 owner --json | jq .guests; }
no_guest() { [ "$(guests)" -eq 0 ]; }
has_guests() { [ "$(guests)" -eq "$1" ]; }
no_process() { ! pgrep -f "$1" >/dev/null; }
raw() { # HOW WORD...: a request of nobody at n1 to n2
	IOCOM_RUN_DIR=$PAIR/n1/run IOCOM_MUNGE_SOCKET=$PAIR/munge-n1/socket \
		python3 tests/cluster/ask_raw.py n2 "$1" owner "${@:2}" 2>&1
}

# --- state: at once, told, explained, kept ---
tap_like "a node is open without rules" "$(owner)" "^state +open$"
before=$(pair_count n2 admissions_refused)
owner close --reason "new disks" >/dev/null
out=$(guest -- true)
tap_is "a job for a closed node gets the reason, and its client 125" "$? $out" \
	"125 iocom run: node n2 refused the job (owner): closed: new disks"
tap_true "other nodes are told" until_true 5 knows "closed: new disks"
tap_like "iocom nodes says so" "$(pair_on n1 nodes)" "^n2: owner: closed: new disks$"
tap_is "a job without a wish for a node runs at home" "$(pair_user n1 run --io-rate 1 -- echo here)" here
tap_like "iocom explain says why it was not there" "$(pair_user n1 explain last)" \
	"^  n2: owner: closed: new disks$"
tap_is "and the closed node was not even asked" "$(($(pair_count n2 admissions_refused) - before))" 1
owner cap cpu=10% >/dev/null
pair_stop n2
agent2
tap_true "after a restart the two see each other" until_true 20 pair_sees n1 2
quota() { awk 'NR == 1' "$1" 2>/dev/null; }
group() { find /sys/fs/cgroup -path "*/$PAIR_SCOPE/n2/guests/$1" 2>/dev/null | head -n 1; }
file=$(group cpu.cfs_quota_us)
[ -n "$file" ] || file=$(group cpu.max)
expected="^$(($(nproc) * 10000))( 100000)?$"
[ -z "$file" ] || tap_like "the control group has its cap" "$(quota "$file")" "$expected"
owner cap none >/dev/null
tap_like "and the node is still closed" "$(owner)" "^state +closed: new disks \(root@n2, "
tap_like "at its admission, too" "$(guest -- true)" "closed: new disks"
owner resume >/dev/null
tap_is "resumed, it takes jobs" "$(guest -- echo there)" there

# --- a drain while jobs begin: each runs whole or is refused, none is lost ---
for i in $(seq 24); do
	(guest -- sh -c "echo begun >>'$OUT/drain.$i'; sleep 1; echo ended >>'$OUT/drain.$i'" >"$OUT/drain.out.$i"
		echo $? >"$OUT/drain.status.$i") &
	[ "$i" -ne 8 ] || { until_true 10 test -e "$OUT/drain.1" && owner drain --reason kernel >/dev/null; }
done
wait_drain() { [ "$(cat "$OUT"/drain.status.* 2>/dev/null | wc -l)" -eq 24 ]; }
tap_true "each client ends" until_true 30 wait_drain
ran=0 refused=0 other=0
for i in $(seq 24); do
	if [ "$(cat "$OUT/drain.status.$i")" = 0 ] && [ "$(paste -sd+ "$OUT/drain.$i")" = begun+ended ]; then
		ran=$((ran + 1))
	elif [ "$(cat "$OUT/drain.status.$i")" = 125 ] && [ ! -e "$OUT/drain.$i" ] &&
		grep "drain[a-z]*: kernel" "$OUT/drain.out.$i" >/dev/null; then
		refused=$((refused + 1))
	else
		other=$((other + 1))
	fi
done
tap_is "each job ran whole or was refused with the reason" "$other" 0
tap_calc "those that had begun ended, later ones were refused ($ran, $refused)" "$ran >= 1 && $refused >= 8"
tap_true "no guest is left" until_true 10 no_guest
tap_like "and the node is drained" "$(owner)" "^state +drained: kernel"
tap_true "as other nodes are told" until_true 5 knows "drained: kernel"
owner resume >/dev/null

# --- a drain that is waited for ---
tap_is "nobody is there: a drain ends at once" "$(owner drain --wait --json | jq -r '"\(.state) \(.guests)"')" "draining 0"
owner resume >/dev/null
guest -- sh -c "echo >'$OUT/stays'; sleep 60" >/dev/null &
until_true 10 test -e "$OUT/stays"
out=$(owner drain --wait 1s --reason kernel)
tap_like "with a guest that stays it gives up in time, with 3" "$? $out" "^3 iocom owner: 1 guest is left at node n2$"
owner drain --wait >"$OUT/drained" &
waiter=$!
until_true 5 grep left "$OUT/drained"
pair_user n1 owner --node n2 drain --wait 1m >"$OUT/drained.n1" 2>&1 &
far=$!
until_true 5 grep left "$OUT/drained.n1"
kill -0 "$waiter" "$far" && owner expel --grace 1s >/dev/null
wait "$waiter"
tap_like "when it has ended the drain has, too" "$? $(paste -sd ' ' "$OUT/drained")" "^0 iocom owner: 1 guest is left at node n2 node +n2 state +drained "
wait "$far"
tap_like "also for an administrator elsewhere" "$? $(paste -sd ' ' "$OUT/drained.n1")" "^0 iocom owner: 1 guest is left at node n2 node +n2 state +drained "
owner resume >/dev/null
guest -- sh -c "echo >'$OUT/stays2'; sleep 60" >/dev/null &
until_true 10 test -e "$OUT/stays2"
owner drain --wait >"$OUT/undrained" &
waiter=$!
until_true 5 grep left "$OUT/undrained"
owner resume >/dev/null
wait "$waiter"
tap_like "somebody else ends the drain" "$? $(paste -sd ' ' "$OUT/undrained")" "^1 .*node n2 is open again: root@n2 has ended the drain"
owner expel --grace 1s >/dev/null
until_true 10 no_guest

# --- caps, in the group of guests alone ---
tap_like "a cap of the processors says how it is held" "$(owner cap cpu=10% network=10%)" \
	"^cap +cpu=10%, by (control group|admission)"
tap_like "one that no control group holds says so" "$(owner)" "network=10%, by admission only: control groups do not"
if [ -n "$file" ]; then
	tap_like "the control group has it" "$(quota "$file")" "$expected"
	guest -- timeout 20 sh -c 'while :; do :; done' >/dev/null &
	throttled() { awk '/^nr_throttled/ { exit !($2 > 0) }' "$(dirname "$file")/cpu.stat"; }
	tap_true "and slows a guest down" until_true 10 throttled
	tap_like "no second one gets in beside it" "$(guest -- true)" "owner\): caps cpu: 1 guests are there"
	pair_on n2 run --node n2 -- sh -c 'cat /proc/self/cgroup' >"$OUT/local"
	tap_is "a job of the node itself is in no such group" "$(grep -c /guests/ "$OUT/local")" 0
else
	tap_skip "the control group has the cap" "no cpu controller here"
fi
owner cap none >/dev/null
[ -z "$file" ] || tap_like "without caps the group is free" "$(quota "$file")" "^(-1|max 100000)$"

# --- expelled ---
owner expel --grace 1s --reason mine >/dev/null
tap_true "an expelled guest ends" until_true 10 no_guest
guest -- sh -c "trap 'echo asked >>\"$OUT/asked\"' TERM; while :; do sleep 0.1; done" >"$OUT/stubborn" &
client=$!
tap_true "a guest that ignores SIGTERM runs" until_true 10 has_guests 1
until_true 5 sh -c "pgrep -f '$OUT/[a]sked' >/dev/null"
tap_like "is expelled" "$(owner expel --grace 2s --reason "I need it")" "^expelled +1$"
wait "$client"
tap_is "it was asked, then killed" "$? $(cat "$OUT/asked")" "137 asked"
tap_is "its user reads who did that" "$(tail -n 1 "$OUT/stubborn")" "iocom run: expelled by the owner of node n2: I need it"
told() { pair_user n1 jobs --all --json | jq -r '.jobs[0] | "\(.state) \(.text)"'; }
told_is() { [ "$(told)" = "$1" ]; }
tap_true "and iocom jobs keeps it" until_true 5 told_is "killed expelled by the owner of node n2: I need it"

# the agent is killed between the two signals
rm -f "$OUT/asked"
guest -- sh -c "trap 'echo asked >>\"$OUT/asked\"' TERM; while :; do sleep 0.1; done" >"$OUT/orphan" &
client=$!
tap_true "one more stubborn guest" until_true 10 has_guests 1
until_true 5 sh -c "pgrep -f '$OUT/[a]sked' >/dev/null"
owner expel --grace 4s --reason "mine again" >/dev/null
tap_true "it is asked" until_true 5 test -s "$OUT/asked"
pair_stop n2 KILL
tap_true "it outlives its agent" pgrep -f "$OUT/[a]sked" >/dev/null
agent2
tap_true "which is started again, and kills it" until_true 20 no_process "$OUT/[a]sked"
wait "$client"
tap_is "it was asked once" "$? $(cat "$OUT/asked")" "137 asked"
tap_is "its user reads who did that" "$(tail -n 1 "$OUT/orphan")" "iocom run: expelled by the owner of node n2: mine again"
tap_like "the log says so" "$(cat "$PAIR/n2/log")" "job n1-[0-9a-f]+-[0-9]+ of uid 65534 from n1: still expelled by the owner"
until_true 20 pair_sees n1 2

cat >"$OUT/again" <<'JOB'
#!/bin/sh
# The first attempt stays, the second one ends.
echo "$$" >>"$1"
[ "$(wc -l <"$1")" -gt 1 ] || sleep 60
JOB
chmod 755 "$OUT/again"
(pair_user n1 run --node n2 --restartable -- "$OUT/again" "$OUT/attempts" >"$OUT/again.out" 2>&1
	echo $? >"$OUT/again.status") &
tap_true "a restartable guest runs" until_true 10 has_guests 1
until_true 5 test -s "$OUT/attempts"
owner expel --grace 2s >/dev/null
tap_true "expelled, it runs again" until_true 20 test -s "$OUT/again.status"
tap_is "to its end" "$(cat "$OUT/again.status") $(wc -l <"$OUT/attempts")" "0 2"
tap_like "and says why" "$(cat "$OUT/again.out")" "expelled by the owner of node n2; it may run again \(only at the node that is asked for: --node\)"
rm "$OUT/attempts"
(pair_user n1 run --node n2 --restartable -- "$OUT/again" "$OUT/attempts" >"$OUT/again.out" 2>&1
	echo $? >"$OUT/again.status.closed") &
until_true 10 test -s "$OUT/attempts"
owner close >/dev/null
owner expel --grace 2s >/dev/null
tap_true "with the node closed it ends" until_true 20 test -s "$OUT/again.status.closed"
tap_like "and says that, too" "$(paste -sd ' ' "$OUT/again.out")" "it may run again \(only at .* node n2 refused the job \(owner\): closed"
owner open >/dev/null
out=$(owner expel foo)
tap_like "no such job is an error" "$? $out" "^1 iocom owner: node n2 has no guest foo \(.*expelled: 0$"

# --- users, classes, hours, presence ---
owner users deny nobody >/dev/null
tap_like "a denied user" "$(guest -- true)" "owner\): denies user nobody \(users deny nobody\)"
owner users deny none >/dev/null
owner classes deny scan >/dev/null
tap_like "a denied class" "$(guest --class scan -- true)" "owner\): denies jobs of class scan"
owner classes deny none >/dev/null
owner close disk >/dev/null
tap_like "a closed disk" "$(guest --io-rate 200 --requests 1000 -- true)" "owner\): has closed the disk, the job needs 200 requests/s"
tap_is "is none of the business of jobs that need none" "$(guest --class quiet -- echo in)" in
owner open disk >/dev/null
days=(sun mon tue wed thu fri sat)
owner hours "${days[$((($(date +%w) + 3) % 7))]} 10:00-11:00" >/dev/null
tap_like "hours" "$(guest -- true)" "owner\): closed: open ... 10:00-11:00"
owner hours always >/dev/null
tap_is "always" "$(guest -- echo in)" in
owner presence on --idle 60s >/dev/null
python3 - <<'PY' &
import os, pty, time
ours, theirs = pty.openpty()
for i in range(100):
    os.write(ours, b"x\n")
    os.read(theirs, 10)
    time.sleep(0.1)
PY
typist=$!
works() { [ "$(said n1 .presence.somebody)" = true ]; }
tap_true "somebody who types at the node is seen" until_true 10 works
tap_like "and undisturbed" "$(guest -- true)" "owner\): closed: somebody works there"
kill "$typist" 2>/dev/null
owner presence off >/dev/null

# --- rights ---
tap_like "an administrator changes it from another node" "$(pair_user n1 owner --node n2 close --reason remote 2>&1)" \
	"^state +closed: remote \(nobody@n1, "
tap_like "each change is logged" "$(cat "$PAIR/n2/log")" "owner: nobody@n1 \(uid 65534\): close \(remote\): done"
out=$(IOCOM_RUN_DIR=$PAIR/n1/run setpriv --reuid 2 --regid 2 --clear-groups "$IOCOM_BUILD/iocom" owner --node n2 open 2>&1)
tap_like "a stranger does not" "$? $out" "^1 .*node n2 refuses: user .* may not change the owner's rules of node n2"
out=$(pair_on n1 owner --node n2 open 2>&1)
tap_like "nor another node's root" "$? $out" "^1 .*root of node n1 is not root of node n2, .* if the setting administrators .* named root$"
out=$(pair_user n1 owner close 2>&1)
tap_like "nor the administrator of one node at another" "$? $out" "^1 .*user nobody may not change the owner's rules of node n1"
tap_like "a refusal is logged" "$(cat "$PAIR/n2/log")" "owner: refused root@n1 \(uid 0\): root of node n1 is not"
tap_like "everybody may look" "$(IOCOM_RUN_DIR=$PAIR/n1/run setpriv --reuid 2 --regid 2 --clear-groups "$IOCOM_BUILD/iocom" owner --node n2)" "^node +n2$"
tap_like "there is no such node" "$(pair_on n1 owner --node n7 2>&1)" "no node n7 is known"

# --- forged requests ---
tap_is "a request made by hand as a client does" "$(raw nothing close)" answered
changes=$(pair_count n2 owner_changes)
tap_like "the same again" "$(raw twice close | tail -n 1)" "used before \(a replay\)"
tap_like "with a new credential" "$(raw later close | tail -n 1)" "^this request was here before$"
tap_is "each was obeyed once" "$(($(pair_count n2 owner_changes) - changes))" 2
refused=$(pair_count n2 forwarded_refused)
tap_like "of 200 s ago" "$(raw old open)" "^the request was made -20[0-9] s from now"
tap_like "of the future" "$(raw early open)" "synchronise the clocks"
tap_like "for an earlier agent" "$(raw boot open)" "earlier start of the agent"
tap_like "for another node, sent here" "$(raw addressed open)" "^the request is for node n1$"
tap_like "whose credential is for another node" "$(raw node open)" "made for another node"
tap_like "another than the credential binds" "$(raw hash open)" "made for another command"
tap_like "with another nonce" "$(raw nonce open)" "made for another nonce"
tap_like "with a credential for another purpose" "$(raw purpose open)" "made for another purpose"
tap_like "without any" "$(raw none open)" "refuses the credential: it is none"
tap_like "with nonsense" "$(raw junk open)" "MUNGE refuses the credential"
tap_is "each is counted" "$(($(pair_count n2 forwarded_refused) - refused))" 10
tap_like "and logged with its node" "$(cat "$PAIR/n2/log")" "refused a request of a user at node n1 \(owner\): the request was made -20[0-9] s"
tap_like "for no start of the agent" "$(raw unbound open)" "must name the start of the agent that it is for"
tap_like "garbage" "$(raw garbage open)" "no MessagePack map"
tap_is "a word that is none" "$(raw nothing frobnicate | grep -c 'expected open, close')" 1
tap_is "none of them opened the node" "$(said n1 .state)" closed
owner open >/dev/null

# --- a disk that takes no rules ---
mkdir "$PAIR/n2/state/owner.rules.new"
out=$(owner close --reason full)
tap_like "the node closes all the same" "$? $out" "^warning +holds until this agent ends, because it cannot be written: "
tap_like "at its admission" "$(guest -- true)" "owner\): closed: full"
out=$(owner open)
tap_like "it does not open" "$? $out" "^1 .*cannot write the owner's rules.*; nothing is changed$"
rmdir "$PAIR/n2/state/owner.rules.new"
written() { grep 'owner: the rules in force are written now' "$PAIR/n2/log" >/dev/null; }
tap_true "they are written as soon as it takes them" until_true 15 written
tap_is "and no warning is left" "$(said n1 '.warnings | length')" 0
tap_is "the file has them" "$(grep -c '^state = closed' "$PAIR/n2/state/owner.rules")" 1
owner open >/dev/null

# --- what is taken, with a warning ---
tap_like "a user whom nobody knows" "$(owner users deny nosuch)" "^warning +.users deny nosuch.: node n2 knows no user nosuch; "
owner users deny none >/dev/null
tap_like "a cap that is none" "$(owner cap memory=9000000M)" "^warning +.cap memory=9000000M. is no cap here: node n2 has only [0-9.e+]+ M$"
owner cap none >/dev/null

# --- contradictions and usage ---
owner users allow alice >/dev/null
out=$(owner users deny alice)
tap_is "rules that contradict each other" "$? $out" "1 iocom owner: \`users allow alice\` contradicts \`users deny alice\`: take it out of one of the lists"
owner users allow all >/dev/null
out=$(owner cap cpu=0%)
tap_like "a cap of nothing" "$? $out" "^2 .*contradicts that cpu is open: say .close."
out=$(owner hours)
tap_like "no hours" "$? $out" "^2 .*expected hours SPANS, such as hours 'mon-fri"
out=$(owner hours noon)
tap_like "bad hours" "$? $out" "^2 .*expected hours as"
out=$(owner frobnicate)
tap_like "an unknown word" "$? $out" "^2 .*expected open, close, drain"
out=$(owner close --wait)
tap_like "a stray --wait" "$? $out" "^2 .*--wait goes with .drain"
out=$(owner drain --wait=never)
tap_like "a wait that is no time" "$? $out" "^2 .*--wait: "
out=$(owner close --grace 5s)
tap_like "a stray option" "$? $out" "^2 .*--grace goes with"

# --- a damaged file ---
pair_stop n2
sed -i 's/^state = .*/state = ajar/' "$PAIR/n2/state/owner.rules"
agent2
until_true 20 pair_sees n1 2
tap_like "a damaged file closes the node" "$(owner)" "^state +closed: owner's rules unreadable"
tap_like "and says so" "$(cat "$PAIR/n2/log")" "expected open, closed or draining, not 'ajar'; the file is kept as"
tap_is "it is set aside" "$(find "$PAIR/n2/state" -name 'owner.rules.damaged-*' | wc -l)" 1
owner open >/dev/null
tap_is "opened again, it takes jobs" "$(guest -- echo in)" in
pair_stop n1
pair_stop n2
tap_is "both agents stopped well" "$(cat "$PAIR/bad" 2>/dev/null)" ""
tap_done
