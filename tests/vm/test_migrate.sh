#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# `iocom migrate` of an ordinary user's jobs on pure cgroup v2, inside a test machine: two agents on
# its loopback, criu, and all capabilities of root, without which only root's jobs can be restored.
set -u
n=0
build=${IOCOM_BUILD:-/build}
criu=/criu/criu
dir=/tmp/migrate
groups=/sys/fs/cgroup/migrate
ok() { # DESCRIPTION COMMAND...
	what=$1
	shift
	n=$((n + 1))
	if "$@" >$dir/checked 2>&1; then
		echo "ok $n - $what"
	else
		echo "not ok $n - $what"
		tail -n 12 $dir/checked | cut -c 1-500 | sed 's/^/# | /'
		for log in $dir/n1/log $dir/n2/log; do
			[ ! -e $log ] || tail -n 3 $log | sed 's/^/# log: /'
		done
	fi
}
is() { # GOT EXPECTED
	printf 'got:      %s\nexpected: %s\n' "$1" "$2"
	[ "$1" = "$2" ]
}
says() { # PATTERN COMMAND...: it prints a line like that
	pattern=$1
	shift
	"$@" >$dir/said 2>&1
	cat $dir/said
	grep -qE -- "$pattern" $dir/said
}
if [ ! -x $criu ]; then
	echo "1..0 # SKIP there is no criu"
	exit 0
fi
. /tests/vm/movers.sh
agent n1 20000 20005
agent n2 20005 20000
ok "two agents hear of each other" soon 60 both_know
both_know || exit 1

ok "doctor says that jobs of all users can move" says '"users": *true' on n1 root doctor --json

# --- a detached job, there and back ---
# It counts, and reads from a file and writes to another as it goes.
cat >/var/tmp/anna/job <<'END'
exec 5<numbers 6>copied
i=0
while [ $i -lt 120 ]; do
	echo $i
	read -r number <&5
	echo "$number" >&6
	i=$((i + 1))
	sleep 0.1
done
exit 7
END
seq 0 119 >/var/tmp/anna/numbers
chown 1000:1000 /var/tmp/anna/*
member() { # NODE JOB: its shell there
	procs=$(find "$groups/$1" -type d -name "$2")/cgroup.procs
	[ "$procs" != /cgroup.procs ] || return
	for pid in $(cat "$procs"); do
		[ "$(cat "/proc/$pid/comm" 2>/dev/null)" != sh ] || echo "$pid"
	done | grep .
}
member_of_any() { [ -n "$(find "$groups/$1" -type d -name "$2")" ]; } # NODE JOB
rights() { # NODE JOB: what a process of it may
	pid=$(member "$1" "$2") || return
	grep -E '^(Uid|Gid|Groups|Cap...|NoNewPrivs|Seccomp|Umask):' "/proc/$pid/status"
	cat "/proc/$pid/limits" "/proc/$pid/oom_score_adj"
	(cd "/proc/$pid/cwd" && pwd -P)
}
whole() { # FILE N
	[ "$(wc -l <"$1")" -eq "$2" ] && awk '$1 != NR - 1 { print NR ": " $0; exit 1 }' "$1"
}
moved() { # JOB TO, as anna
	says "^$1: moved from n[12] to $2: frozen for [0-9]+ ms, [0-9.]+ MB$" on n1 anna migrate "$1" "$2"
}
cd /var/tmp/anna || exit 1
job=$(on n1 anna run --node n1 --detach --migratable -- sh job)
cd / || exit 1
ok "an ordinary user's job begins" soon 20 member n1 "$job"
sleep 1
rights n1 "$job" >$dir/before
ok "another user may not move it" says "no job of yours named $job" on n1 bert migrate "$job" n2
ok "it moves" moved "$job" n2
sed 's/^/# /' $dir/said
rights n2 "$job" >$dir/after
ok "it has its user's rights and limits there" diff $dir/before $dir/after
ok "which are an ordinary user's" is "$(awk '/^(Uid|Gid|Groups|CapPrm|CapEff):/ { $1 = $1; print }' $dir/after | tr '\n' ' ')" \
	"Uid: 1000 1000 1000 1000 Gid: 1000 1000 1000 1000 Groups: 1000 1002 CapPrm: 0000000000000000 CapEff: 0000000000000000 "
ok "nothing of it is left where it was" is "$(find $groups/n1 -name "$job")" ""
ok "nobody else may move it from there, either" says "no job of yours named $job" on n2 bert migrate "$job" n1
ok "it moves back" moved "$job" n1
sed 's/^/# /' $dir/said
on n1 anna wait "$job" >/dev/null 2>&1
ok "its own status comes" is $? 7
on n1 anna attach "$job" >$dir/out 2>$dir/err
ok "and each line of its output, once" whole $dir/out 120
ok "its files have stayed where it was in them" whole /var/tmp/anna/copied 120
ok "and are its user's" is "$(stat -c %u:%g /var/tmp/anna/copied)" 1000:1000
moves() { on n1 anna explain "$1" | grep -cE "^It moved from n[12] to n[12]: frozen for"; } # JOB
ok "explain lists both moves" is "$(moves "$job")" 2

# --- an attached one ---
input() {
	i=0
	while [ $i -lt 60 ]; do
		echo $i
		i=$((i + 1))
		sleep 0.1
	done
}
mkfifo $dir/input
input >$dir/input &
on n1 anna run --node n1 --migratable --status-fd 3 -- \
	sh -c 'while read -r x; do echo "$x"; done; exit 9' <$dir/input >$dir/out 2>$dir/err 3>$dir/status &
client=$!
ok "an attached job begins" soon 20 grep -q '"started"' $dir/status
job=$(sed -n 's/.*"job": *"\([^"]*\)".*/\1/p' $dir/status | head -n 1)
ok "it moves" moved "$job" n2
ok "and back" moved "$job" n1
wait $client
ok "its client has the status" is $? 9
ok "and all of the output" whole $dir/out 60
ok "and was told nothing" is "$(cat $dir/err)" ""

# --- a large one, whose memory is sent while it runs ---
# It takes minutes in a test machine: only where iocom_long says so.
large() {
	rounds() { # NODE N: so many moves from there said that they did
		grep "$job is held to move: [0-9.]* MB in [0-9]* rounds were sent while it ran" $dir/"$1"/log >$dir/said
		cat $dir/said
		[ "$(wc -l <$dir/said)" -eq "$2" ]
	}
	job=$(on n1 anna run --node n1 --detach --migratable -- /tests/tools/dirty 48 500)
	ok "a job of 48 MB that changes its memory begins" soon 20 member_of_any n1 "$job"
	sleep 15
	ok "it moves" moved "$job" n2
	sed 's/^/# /' $dir/said
	if $criu check --feature mem_dirty_track >/dev/null 2>&1; then
		ok "most of it was sent while it ran" rounds n1 1
		sed 's/^/# /' $dir/said
	fi
	sleep 10 # an agent answers only so many long lists of a user at a time
	ok "it moves back" moved "$job" n1
	sleep 10
	# Its mover is killed: it stays, whole, and may move again.
	mover() { # NODE
		for pid in $(cat "$(find "$groups/$1" -type d -name "$job.move")/cgroup.procs" 2>/dev/null); do
			[ "$(cat "/proc/$pid/comm" 2>/dev/null)" != iocom-shim ] || echo "$pid"
		done | grep .
	}
	on n1 anna migrate "$job" n2 >$dir/moving 2>&1 &
	client=$!
	ok "a process moves it" soon 20 mover n1
	sleep 1
	kill -KILL "$(mover n1 | head -n 1)"
	wait $client
	ok "it does not move without" is "$?" 1
	ok "and its user reads why" grep "the process that moved it was killed" $dir/moving
	sleep 10
	ok "it moves then" moved "$job" n2
	# It ends while its memory is sent.
	another=$job
	job=$(on n1 anna run --node n1 --detach --migratable -- /tests/tools/dirty 48 500)
	sleep 10
	on n1 anna migrate "$job" n2 >$dir/moving 2>&1 &
	client=$!
	ok "another one is on its way" soon 20 mover n1
	on n1 anna kill -KILL "$job" >/dev/null 2>&1
	wait $client
	ok "it does not move, as it has ended" is "$?" 1
	sed 's/^/# /' $dir/moving
	on n1 anna wait "$job" >/dev/null 2>&1
	ok "its end is told" is $? 137
	job=$another
	on n1 anna kill -TERM "$job" >/dev/null 2>&1
	on n1 anna attach "$job" >$dir/out 2>$dir/err
	ok "all of its memory is as it was written last" is "$(tail -n 1 $dir/out)" whole
}
[ -z "${iocom_long:-}" ] || large

# --- nothing is left ---
left() { find $groups -path '*jobs/*' -type d -name '*-*' ! -name 'user@*'; }
gone() { [ -z "$(left)" ]; }
ok "no control group of a job is left" soon 20 gone
ok "no agent complained" is "$(grep -hE ' (error|critical):' $dir/n1/log $dir/n2/log)" ""
for pid in $pids; do
	kill "$pid"
	wait "$pid"
	ok "an agent stops well" is $? 0
done
kill "$(cat $dir/munge/pid)"
echo "1..$n"
