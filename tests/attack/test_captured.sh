#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# The network part of agent alpha is captured: a program in its place (tests/tools/captured_net.c)
# knows all that iocom-net knows, changes and repeats what goes through it, and sends root every
# message of the gate with hostile values.  Nothing is granted that no user's credential asked for,
# what runs goes on, and root stays small and answers its clients.  CAPTURED=full: all of it, longer.
set -uo pipefail
cd "$(dirname "$0")/../.."
. tests/lib/tap.sh
. tests/attack/lib.sh
NETUSER=sys
NETUID=$(id -u $NETUSER) || tap_skip_all "there is no user $NETUSER"
FULL=${CAPTURED:-}
SEED=${SEED:-1}
mkdir "$DIR/captured"
mkdir -m 777 "$DIR/captured/play"
mkdir -m 1777 "$DIR/marks"
cp "$TOOLS/captured_net" "$DIR/captured/iocom-net" || exit 1
PLAY=$DIR/captured/play
munge_up alpha
munge_up beta alpha
munge_up gamma alpha
alpha() { agent_up alpha 7960 --listen 127.0.0.1 --peers 127.0.0.1:7964 --min-uid 1 --lease-s 20 --net-user $NETUSER "$@"; }
alpha --metrics 127.0.0.1:7969 --net-program "$DIR/captured/iocom-net"
agent_up beta 7964 --listen 127.0.0.1 --peers 127.0.0.1:7960 --min-uid 1
tap_true "two agents hear of each other, one by a captured network part" until_true 15 sees alpha 2
until_true 15 sees beta 2

# --- what it is told to do, and the table ---
tell() { # LINE: no answer is waited for
	rm -f "$PLAY/answer"
	printf '%s\n' "$1" >"$PLAY/line"
	mv "$PLAY/line" "$PLAY/command"
}
play() { # LINE: its answer
	tell "$1"
	until_true 10 test -e "$PLAY/answer" && cat "$PLAY/answer"
}
told() { # COUNT: of what it was told or has sent
	play state | grep -oE "(^| )$1 [0-9]+" | grep -oE '[0-9]+$' || echo 0
}
result() { # ATTACK SENT CAME PASSED(0/1) [DETAIL]
	TABLE+=("$(printf '%-46s | %-40s | %s' "$1" "$2" "$3")")
	if [ "$4" = 0 ]; then tap_ok "$1: $3"; else tap_fail "$1: $3" "sent: $2; ${5-}"; fi
}
holds() { awk "BEGIN { exit !($1) }" </dev/null; } # EXPRESSION
restarts() { counter alpha network_restarts; }
# shellcheck disable=SC2154 # agent_up sets it
rss() { awk '/^VmRSS/ { print int($2 / 1024) }' "/proc/$AGENT_alpha/status"; } # MiB
fds() { find "/proc/$AGENT_alpha/fd" | wc -l; }
ran() { [ ! -e "$DIR/marks/$1" ] && echo 0 || wc -l <"$DIR/marks/$1"; } # MARK
# A job of the victim's: prints its exit status and how often it ran.
job() { # HOME NODE
	local mark
	mark=$(date +%s%N)
	at "$1" as $VICTIM timeout 60 "$iocom" run --node "$2" -- \
		sh -c "echo ran >>$DIR/marks/$mark; seq 1 2000; exit 3" >"$DIR/out" 2>"$DIR/err" </dev/null
	echo "$? $(ran "$mark")"
}
good() { [ "$(job "$1" "$2")" = "3 1" ] && cmp -s "$DIR/out" <(seq 1 2000); }
well() { good alpha beta && good beta alpha; }
tap_true "jobs run both ways" well

# Victims: they run all the time, each with its own home, and one has a lease that is renewed.
victim() { # NAME HOME NODE OPTION...
	at "$2" as $VICTIM "$iocom" run --node "$3" "${@:4}" -- sh -c "
		echo ran >>$DIR/marks/$1; i=0
		until [ -e $DIR/marks/stop ]; do i=\$((i + 1)); echo \$i; sleep 0.2; done; exit 7" \
		>"$DIR/$1.out" 2>"$DIR/$1.err" </dev/null &
	eval "VICTIM_$1=$!"
	PIDS+=($!)
	until_true 10 test -s "$DIR/$1.out"
}
victim in beta alpha
victim out alpha beta
victim leased alpha beta --restartable
tap_is "three jobs run while it goes on" "$(cat "$DIR"/marks/{in,out,leased} | wc -l)" 3
# `replays` is made when somebody reads what is kept of an ended job.
WHERE() { find "$DIR/alpha/run" "$DIR/alpha/state" -maxdepth 1 ! -name replays -printf '%P\n' | sort; }
before_files=$(WHERE) before_rss=$(rss) before_fds=$(fds) pid=$AGENT_alpha

# --- what goes through it is changed ---
# Such a job fails, or is asked about once more; it never runs twice or with another's answer.
changed() { # WHAT TYPE HOW HOME NODE
	local got
	play "mangle $2 $3" >/dev/null
	got=$(job "$4" "$5")
	mangled=$(told mangled)
	play "mangle off" >/dev/null
	came="it ran ${got#* } times, exit ${got% *}"
	[ "${got#* }" -le 1 ] && [ "$mangled" -ge 1 ] && { [ "$got" = "3 1" ] || [ "${got% *}" = 125 ]; }
	result "$1" "$2 $3" "$came" $? "changed $mangled; $(cat "$DIR/err")"
}
for how in flip short old other swap lost ${FULL:+noise twice none}; do
	changed "answers to alpha" answer $how alpha beta
done
[ -z "$FULL" ] || sleep 3
for how in flip short old ${FULL:+noise}; do
	changed "questions of beta" question $how beta alpha
done
for how in kind job node ticket version old flip ${FULL:+short noise}; do
	changed "beginnings of streams" stream $how beta alpha
done
tap_true "unchanged, jobs run" well
play "mangle greeting empty" >/dev/null
agent_up gamma 7970 --listen 127.0.0.1 --peers 127.0.0.1:7960
for how in elsewhere all empty ${FULL:+version flip}; do
	play "mangle greeting $how" >/dev/null
	greeted() { [ "$(told mangled)" -ge 1 ]; }
	until_true 10 greeted
	sleep 0.2
	! sees gamma 2
	result "greetings of node gamma" "the credential: $how" "no session" $?
done
play "mangle off" >/dev/null
agent_down gamma
tap_is "agent gamma ends as it should" "$?" 0

# --- the sockets of streams that root has ---
stream() { # HOW TIMES
	local mark status client i
	mark=$(date +%s%N)
	{ sleep 0.2; seq 1 3000; sleep 0.3; seq 3001 6000; } | at beta as $VICTIM timeout 60 "$iocom" run --node alpha -- \
		sh -c "echo ran >>$DIR/marks/$mark; seq 1 5000; sleep 0.2; cat; sleep 0.1; seq 5001 9000; exit 3" >"$DIR/out" 2>"$DIR/err" &
	client=$!
	until_true 10 test -s "$DIR/marks/$mark"
	for ((i = 0; i < $2; i++)); do play "held $1" >/dev/null; done
	wait $client
	status=$?
	[ "$(ran "$mark")" = 1 ] && { [ $status = 125 ] || { [ $status = 3 ] && cmp -s "$DIR/out" <(seq 1 5000; seq 1 6000; seq 5001 9000); }; }
	result "a running stream's socket" "$1, $2 times" "all output, or an error; exit $status" $? "ran $(ran "$mark"); $(wc -l <"$DIR/out") lines; $(cat "$DIR/err")"
	play "held close" >/dev/null
}
stream inject 1
stream steal 12
stream shut 1
stream block 1
[ -z "$FULL" ] || { stream half 1; stream inject 5; stream steal 40; stream shut 3; }

# --- messages that were there before, or are made up ---
leased() { [ "$(told renew)" -ge 1 ]; }
tap_true "it has seen a renewal of a lease" until_true 20 leased
play reset >/dev/null
sent=$(play replay)
settled() { [ "$(told replies)" -ge "$(grep -oE 'questions [0-9]+' <<<"$sent" | grep -oE '[0-9]+')" ]; }
until_true 10 settled
answered=$(told given) taken=$(told taken)
holds "$answered == 0"
result "all that was kept, once more" "$sent" "$answered answers; $taken handshakes, none completed" $? "$(play state)"
play reset >/dev/null
before=$(counter alpha streams_accepted)
sent=$(play "fds $DIR/alpha/run/iocom.sock /etc/passwd")
until_true 5 eval '[ "$(told refused)" -ge 9 ]'
holds "$(told refused) == 9 && $(told taken) == 0"
result "job streams that are none" "9 other descriptors" "9 refused" $? "$sent; $(play state)"
play "stream $(at beta "$iocom" jobs --json | jq -r '.jobs[0].job') alpha" >/dev/null
until_true 5 eval '[ "$(told refused)" -ge 10 ]'
holds "$(told refused) == 10 && $(counter alpha streams_accepted) == $before"
result "a stream of a running job" "a key of its own" "refused" $? "$(play state)"
log_mark alpha
play "greet alpha $DIR/alpha/munge" >/dev/null
until_true 5 eval "log_new alpha | grep -q 'made by uid $NETUID, not by root'"
holds "$? == 0 && $(told given) == 0"
result "a session" "a credential of its own user" "refused: made by uid $NETUID, not by root" $?
tried=$(play "rights $DIR/alpha/state/iocom.db $DIR/alpha/key $DIR/alpha/state/jobs /etc/shadow")
! grep -q DONE <<<"$tried"
result "what its user may not do" "setuid, kill, ptrace, root's files" "refused" $? "$tried"
tap_is "a job as its own user is that user's" "$(at alpha as "$NETUID" "$iocom" run --node alpha -- id -u)" "$NETUID"

# --- lies about nodes ---
# Whoever listens where alpha thinks that beta is gets alpha's greeting, and cannot answer it.
python3 -c "
import socket
s = socket.create_server(('127.0.0.66', 8000))
s.settimeout(60)
while True:
	c, _ = s.accept()
	open('$DIR/caught', 'ab').write(c.recv(65536))
	c.sendall(b'\0SP\0\0\x30\0\0')
" >/dev/null 2>&1 &
PIDS+=($!)
until_true 5 eval "ss -ltnH | grep -q 127.0.0.66:8000"
play "lie beta place" >/dev/null
got=$(job alpha beta)
[ "${got#* }" = 0 ] && [ "${got% *}" = 125 ] && [ -s "$DIR/caught" ]
result "beta is where the attacker listens" "beta's vector, number 2^64 - 2" "it was dialled; no session, no job" $? "$got; $(cat "$DIR/err")"
play "lie evil load" >/dev/null
evil() { at beta "$iocom" nodes --json | jq -e '.nodes[] | select(.name == "evil")' >/dev/null; }
until_true 5 evil
at alpha as $VICTIM "$iocom" run --node evil -- touch "$DIR/marks/evil" 2>"$DIR/err"
holds "$? == 125"
result "a node that is none, with 65,536 cores" "its vector; relayed to beta" "both list it; its jobs fail" $? "$(cat "$DIR/err")"
play "mangle publish load" >/dev/null
boast() { at beta "$iocom" nodes --json | jq -e '.nodes[] | select(.name == "alpha" and .cores == 65536)' >/dev/null; }
tap_true "it lies of alpha's own load with the key of its bulletins" until_true 10 boast
result "alpha's own load" "bulletins with 65,536 cores" "beta believes it; its jobs run as who they are" \
	"$([ "$(at beta as $VICTIM "$iocom" run --node alpha -- id -u)" = $VICTIM ]; echo $?)"
n=$(restarts)
tell end
until_true 10 eval '[ "$(restarts)" -gt "$n" ]'
tap_true "its lies of beta end with it, and jobs go there again" until_true 30 good alpha beta

# --- floods ---
# The slowest answer to a local client meanwhile, in ms.
flood() { # KIND N
	local began slow=0 t
	rm -f "$PLAY/flooded"
	play "flood $1, $2 $SEED" >/dev/null
	began=$SECONDS
	until [ -e "$PLAY/flooded" ] || [ $((SECONDS - began)) -gt 100 ]; do
		t=$(date +%s%N)
		at alpha as $VICTIM timeout 30 "$iocom" jobs >/dev/null 2>&1 || slow=99999
		t=$((($(date +%s%N) - t) / 1000000))
		[ $t -le $slow ] || slow=$t
	done
	holds "$slow < 5000" && grep -q "^$2 Success" "$PLAY/flooded"
	result "$2 $1" "as fast as root takes them" "clients answered within $slow ms; $(rss) MiB" $? "$(cat "$PLAY/flooded")"
}
many=${FULL:+100000}
many=${many:-20000}
for kind in pages clocks counts pongs ready answers questions greetings renewals streams keys vectors; do
	flood $kind $many
done
flood "large questions" $((many / 20))
flood random $((many / 10))
if [ -n "$FULL" ]; then for SEED in 2 3 4 5; do flood random 20000; done; fi
# It reads nothing while it asks for answers.
flooded=$(fds)
play "flood pages, $many" >/dev/null
tell "deaf ${FULL:+1}2"
sleep 1.5
holds "$(fds) < $flooded + 100"
result "it reads nothing" "$many times: the page of metrics" "$(fds) descriptors, $(rss) MiB" $?
until_true 30 test -e "$PLAY/flooded"
tell "end"
n=$(restarts)
until_true 10 eval '[ "$(restarts)" -ge "$n" ] && [ -z "$(ls "$PLAY/command" 2>/dev/null)" ]'
play "mangle answer none" >/dev/null
rm -f "$PLAY/flooded"
n=$(rss)
play "flood keys, $many" >/dev/null
until_true 60 test -e "$PLAY/flooded"
got=$(job alpha beta)
[ "$got" = "125 0" ] && holds "$(rss) < $n + 40 && $(counter alpha keys_refused) > 0"
result "it answers nothing that root asks" "$many keys asked for, and a job" "$(counter alpha keys_refused) refused; the job fails" $? "$got; $n to $(rss) MiB; $(cat "$DIR/err")"
play "mangle off" >/dev/null
more=150
[ -z "${IOCOM_SANITIZED:-}" ] || more=600 # freed memory is kept for a while
tap_calc "it has at most $more MiB more, and 200 descriptors" "$(rss) < $before_rss + $more && $(fds) < $before_fds + 200"

# --- what is no message: it is killed, and begun anew ---
bads=8
[ -z "$FULL" ] || bads=100
for ((k = 0; k < bads; k++)); do
	n=$(restarts)
	up() { play "mangle off" >/dev/null 2>&1; }
	until_true 5 up
	tell "bad $k"
	if ! until_true 4 eval '[ "$(restarts)" -gt "$n" ]' 2>/dev/null; then
		what=$(cat "$PLAY/answer")
		[ "$what" != none ] || break
		result "no message" "$what" "nothing" 1
		continue
	fi
	what=$(cat "$PLAY/answer" 2>/dev/null)
	result "no message" "${what:-number $k}" "killed and begun anew" 0
done

# --- after all that ---
tap_true "the agent lives, the same process" eval '[ "$pid" = "$AGENT_alpha" ] && kill -0 "$pid"'
tap_true "jobs run both ways" until_true 30 well
touch "$DIR/marks/stop"
for name in in out leased; do
	who=VICTIM_$name
	wait "${!who}"
	status=$?
	tap_is "the job that ran all the time ($name) ends with its status, ran once" "$status $(ran $name)" "7 1"
	tap_true "... and with all its output" cmp "$DIR/$name.out" <(seq 1 "$(wc -l <"$DIR/$name.out")")
done
uids() { at "$1" "$iocom" jobs --all --json | jq -c '[.jobs[].uid] | unique'; }
tap_is "alpha knows jobs of those who asked, of nobody else" "$(uids alpha)" "[$(printf '%s\n' "$NETUID" $VICTIM | sort -n | paste -sd,)]"
tap_is "so does beta" "$(uids beta)" "[$VICTIM]"
tap_is "each job that began was asked for" "$(cat "$DIR"/marks/* | wc -l)" "$(find "$DIR/marks" -type f -size +0 | wc -l)"
tap_is "no file but theirs was made" "$(find "$DIR/marks" ! -uid $VICTIM -type f ! -name stop; ls /etc/cron.d/x "$DIR/marks/evil" 2>/dev/null)" ""
tap_is "nothing is new in the agent's directories" "$(WHERE)" "$before_files"
tap_is "no cgroup has a name that it made up" "$(find /sys/fs/cgroup -name '*ghost*' -o -name '*evil*' -o -name '*mallory*' 2>/dev/null)" ""
agent_down alpha
tap_is "the agent ends as it should" "$?" 0
alpha
tap_true "with the real network part all is well" until_true 30 well
for name in alpha beta; do
	agent_down $name
	tap_is "agent $name ends as it should" "$?" 0
done
printf '# | %-46s | %-40s | %s\n' attack "what was sent" "what came of it"
printf '# | %s\n' "${TABLE[@]}"
tap_done
