#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Data that goes along with jobs: what is copied and what is found, what comes back, what is
# refused, and what is left when something dies in the middle.
set -uo pipefail
cd "$(dirname "$0")/../.."
. tests/lib/tap.sh
. tests/lib/cluster.sh
KEPT=/mnt/${IOCOM_TESTBED_MARK:-iocom-disk}
[ "$KEPT" != /mnt/iocom-testbed ] || KEPT=/mnt/iocom-disk
AGENT_OPTIONS="--data-dir $KEPT/data --data-cache-mb 50" cluster_up --nodes 2 --disk 80,80 --disk-size 160 --mem 1500 --net 200mbit
tap_true "both nodes hear of each other" until_true 10 sees n1 2
export XDG_CACHE_HOME=$SCRATCH/xdg
HERE=$SCRATCH/work # on a file system of this machine: no disk of a node is slow
mkdir -p "$HERE" "$XDG_CACHE_HOME"
chmod 1777 "$HERE" "$XDG_CACHE_HOME"
at() { # DIRECTORY OPTION...: at n2, from there
	(cd "$1" && shift && "$TESTBED" exec n1 -- iocom run --node n2 "$@")
}
w() { at "$HERE" "$@"; }
cached() { on n2 sh -c "ls $KEPT/data/0/cache | wc -l"; }
left() { on n2 sh -c "ls $KEPT/data/*/ | grep -c '^n[12]-'"; } # directories of jobs
none_left() { [ "$(left)" = 0 ]; }
staged() { jq -r "select(.state==\"staged\") | .data | \"\(.copied_bytes) \(.found_bytes)\"" "$SCRATCH/status"; }
says() { # NAME PATTERN OPTION...: refused with 125 and that sentence
	local name=$1 pattern=$2
	shift 2
	w "$@" >"$SCRATCH/o" 2>&1
	tap_is "$name: 125" $? 125
	tap_like "$name: the sentence" "$(tr '\n' ' ' <"$SCRATCH/o")" "$pattern"
}

# --- one file ---
head -c 20000000 /dev/urandom >"$HERE/in"
sleep 0.05 # a file that has just changed is not remembered
sum=$(sha256sum <"$HERE/in")
tap_is "at home nothing is copied: it runs where it is" \
	"$(cd "$HERE" && on n1 iocom run --policy nlb --data in -- sh -c 'pwd; sha256sum <in')" "$HERE
$sum"
tap_is "no directory was made for it elsewhere" "$(on n2 ls "$KEPT/data" | wc -l)" 0
tap_is "at n2 it has the same content" "$(w --status-fd 7 --data in -- sha256sum in 7>"$SCRATCH/status")" "${sum%-}in"
tap_is "all of it was copied" "$(staged)" "20000000 0"
tap_is "the next job finds it" "$(w --status-fd 7 --data ./in -- sh -c 'sha256sum <in' 7>"$SCRATCH/status")" "$sum"
tap_is "and copies nothing" "$(staged)" "0 20000000"
touch -d '2020-02-03 04:05:06.789' "$HERE/in"
tap_is "its time is that at home" "$(w --data in -- stat -c %y in)" "$(stat -c %y "$HERE/in")"
tap_is "as user nobody the cache is another one" \
	"$(cd "$HERE" && "$TESTBED" exec n1 --user nobody -- iocom run --node n2 --status-fd 7 --data in -- sh -c 'sha256sum <in; id -un' 7>"$SCRATCH/status")" "$sum
nobody"
tap_is "whose files are his own" "$(staged) $(on n2 stat -c '%U %a' "$KEPT/data/65534" "$KEPT/data/65534/cache" | tr '\n' ' ')" "20000000 0 root 711 nobody 700 "
tap_is "what the job may not change, it cannot" "$(cd "$HERE" && "$TESTBED" exec n1 --user nobody -- iocom run --node n2 --data in -- sh -c 'echo x >>in' 2>/dev/null; echo $?)" 2
tap_true "the directories of jobs are removed" until_true 5 none_left

# --- two users, files of one name ---
mkdir -p "$HERE/two/a" "$HERE/two/b"
echo one >"$HERE/two/a/x"
echo two >"$HERE/two/b/x"
chmod -R a+rX "$HERE/two"
tap_is "two users with files of one name: each has his own" \
	"$(at "$HERE/two/a" --data x -- cat x; cd "$HERE/two/b" && "$TESTBED" exec n1 --user nobody -- iocom run --node n2 --data x -- cat x)" "one
two"

# --- directories, programs, outputs ---
mkdir -p "$HERE/tree/deep/er" "$HERE/tree/empty"
echo a >"$HERE/tree/a"
echo b >"$HERE/tree/deep/er/b"
ln -s a "$HERE/tree/link"
printf '#!/bin/sh\necho ran in $(pwd -P | sed s,/[^/]*$,,) with "$@"\ncat tree/a tree/deep/er/b tree/link; ls -d tree/empty\n' >"$HERE/prog"
chmod 755 "$HERE/prog"
tap_is "a directory, and the program beside it" "$(w --data tree -- ./prog 1 2)" "ran in $KEPT/data/0 with 1 2
a
b
a
tree/empty"
mkdir -p "$HERE/out"
echo before >"$HERE/out/r"
inode=$(stat -c %i "$HERE/out/r")
tap_is "--bring: the job's status is 0" "$(w --data tree --bring out/r --bring new -- sh -c 'cat tree/a >out/r; mkdir -p new/sub; echo 1 >new/1; echo 2 >new/sub/2; chmod 750 new/1'; echo $?)" 0
tap_is "what it made is here" "$(cat "$HERE/out/r" "$HERE/new/1" "$HERE/new/sub/2" | tr '\n' ' ')$(stat -c %a "$HERE/new/1")" "a 1 2 750"
tap_true "a file was replaced, not written to" test "$(stat -c %i "$HERE/out/r")" != "$inode"
tap_is "nothing temporary is left" "$(find "$HERE" -name '.iocom-bring*' | wc -l)" 0
tap_is "a job that fails brings its outputs, too" "$(w --bring out/log -- sh -c 'echo bad >out/log; exit 3'; echo "$? $(cat "$HERE/out/log")")" "3 bad"
tap_is "an output that is not there: 255" "$(w --bring out/none -- true 2>"$SCRATCH/e"; echo $?)" 255
tap_like "and why" "$(cat "$SCRATCH/e")" 'out/none was not fetched from node n2: the job has not made it'
tap_is "a link out of the job's directory is not followed" "$(w --bring out/none -- ln -s /etc/hostname out/none 2>"$SCRATCH/e"; echo $?)" 255
tap_like "and why" "$(cat "$SCRATCH/e")" 'leads out of the job'
echo 1 >"$HERE/count"
for i in 1 2; do w --data count --bring count -- sh -c 'echo $(($(cat count) + 1)) >count'; done
tap_is "an input below --bring is the job's own to change" "$(cat "$HERE/count")" 3
tap_is "a detached job has its data" "$(job=$(w --detach --data in -- sh -c 'sha256sum <in'); on n1 iocom attach "$job")" "$sum"

tap_is "1 TB of holes comes home, and takes no room" "$(w --bring holes -- sh -c 'truncate -s 1T holes; echo end >>holes'; echo "$? $(stat -c %s "$HERE/holes") $(($(stat -c %b "$HERE/holes") < 1000)) $(tail -c 4 "$HERE/holes")")" "0 1099511627780 1 end"
rm "$HERE/holes"
tap_is "a name that no terminal likes costs nothing else" "$(w --bring odd -- sh -c 'mkdir odd; mkfifo "odd/$(printf "a\\n\\033[2Jb")"; echo z >odd/z' 2>"$SCRATCH/e"; echo "$? $(cat "$HERE/odd/z")")" "255 z"
tap_is "and the sentence is plain" "$(cat "$SCRATCH/e")" "iocom run: odd/a??[2Jb was not fetched from node n2: is no file and no directory"
mkdir -p "$HERE/linked" "$HERE/apart"
ln -s ../apart "$HERE/linked/way"
tap_is "a link below --bring leads nowhere" "$(w --bring linked -- sh -c 'mkdir -p linked/way; echo x >linked/way/x; echo y >linked/y' 2>"$SCRATCH/e"; echo "$? $(cat "$HERE/linked/y") $(ls "$HERE/apart")")" "255 y "
tap_like "and why" "$(cat "$SCRATCH/e")" 'linked/way was not fetched from node n2: .* is a link or a file'

# --- refused, each with a sentence, before anything runs ---
ln -s /etc/hostname "$HERE/leads-out"
ln -s ../../etc "$HERE/tree2" && mkdir "$HERE/with" && ln -s /etc "$HERE/with/etc"
mkfifo "$HERE/fifo"
says "outside" 'outside the working directory' --data ../../../etc/hostname -- true
says "absolute and outside" 'outside the working directory' --data /etc/hostname -- true
says "a link that leads out" 'leads-out .*leads out of the working directory' --data leads-out -- true
says "a link in a directory that leads out" 'with/etc .*leads out' --data with -- true
says "a FIFO" 'no file and no directory' --data fifo -- true
says "nothing there" 'takes a size or a path that exists' --data nothing -- true
says "--bring outside" 'outside the working directory' --bring ../x -- true
says "--bring and --detach" 'does not go with --detach' --detach --bring x -- true
head -c 60000000 /dev/zero >"$HERE/large"
says "more than the cache may have" 'cache at node n2 has no room: 60.0 MB would come, of its 52.4 MB .data_cache_mb.' --data large -- true
rm "$HERE/large"

# --- with a terminal, in a batch, on many nodes, run again ---
tap_is "with a terminal: the data is there, the output comes home" \
	"$(script -qec "cd '$HERE' && '$TESTBED' exec n1 -- iocom run --node n2 --pty --data in --bring out/tty -- sh -c 'test -t 0 && test -t 1 && sha256sum <in >out/tty; echo ended'" /dev/null </dev/null | grep -o ended; cat "$HERE/out/tty")" "ended
$sum"
tap_is "on many nodes: each has it" "$(cd "$HERE" && on n1 iocom run -N n1,n2 --gather --data in -- sha256sum in | grep -c "${sum%-}in")" 1
for i in 1 2 3 4 5 6; do echo "sha256sum <in >made/$i; hostname >>made/$i"; done >"$HERE/list"
mkdir "$HERE/made"
tap_is "a batch: its workers take the data along, once each" \
	"$(w_batch=$(cd "$HERE" && on n1 iocom batch -q -j 2 --node n2 --data in --bring made list 2>&1); echo "$? $w_batch")" "0 "
tap_is "and what their commands made comes home" "$(cat "$HERE"/made/* | sort | uniq -c | tr -s ' ')" " 6 ${sum%% *} -
 6 n2"
rm -r "$HERE/made"
printf '#!/bin/sh\necho begun >>%s/marks\n[ "$(wc -l <%s/marks)" -gt 1 ] || sleep 300\nmkdir -p out\nsha256sum <in | tee out/again\n' "$SCRATCH" "$SCRATCH" >"$HERE/twice.$$"
chmod 755 "$HERE/twice.$$"
supervisor() { ps -o ppid= -p "$(pgrep -f "^/bin/sh ./twice.$$")" | tr -d ' '; }
begun() { [ "$(wc -l <"$SCRATCH/marks" 2>/dev/null)" = "$1" ]; }
w --restartable --data in --bring out/again -- ./twice.$$ >"$SCRATCH/o" 2>"$SCRATCH/e" &
run=$!
tap_true "a restartable job runs" until_true 10 begun 1
kill -9 "$(supervisor)"
wait $run
tap_is "its supervisor was killed: it ends with the status of its second attempt" $? 0
tap_is "which had its data again, and its output is here" "$(cat "$SCRATCH/o" "$HERE/out/again")" "$sum
$sum"
tap_is "it began twice, and nothing else was said" "$(wc -l <"$SCRATCH/marks") $(grep -c 'not fetched' "$SCRATCH/e") $(grep -c 'was lost with node n2; attempt 2' "$SCRATCH/e")" "2 0 1"
rm "$SCRATCH/marks"
job=$(w --detach --restartable --data in -- ./twice.$$)
tap_true "a detached one runs" until_true 10 begun 1
kill -9 "$(supervisor)"
tap_true "it is lost, and begins again" until_true 30 begun 2
tap_is "and has its data, too" "$(on n1 iocom wait "$job" >/dev/null 2>&1; echo $?)" 0
rm "$SCRATCH/marks"
cp "$HERE/in" "$HERE/once"
w --restartable --data once -- ./twice.$$ >"$SCRATCH/o" 2>"$SCRATCH/e" &
run=$!
until_true 10 begun 1
rm "$HERE/once"
kill -9 "$(supervisor)"
wait $run
tap_is "its data is gone when it would be run again: 255" $? 255
tap_like "and why" "$(cat "$SCRATCH/e")" 'its data cannot go along again: --data once: No such file'
w --data in -- true
tap_true "what the killed supervisors left goes with the next job" until_true 10 none_left

# --- files that change meanwhile: the node waits for the lock of the cache, which we have ---
taking() { pgrep -f "^iocom-data --data-take $KEPT/" >/dev/null; }
lock() { # until unlock
	rm -f "$SCRATCH/locked" "$SCRATCH/unlock"
	on n2 flock "$KEPT/data/0/cache" sh -c "touch '$SCRATCH/locked'; while [ ! -e '$SCRATCH/unlock' ]; do sleep 0.05; done" &
	LOCK=$!
	until_true 10 test -e "$SCRATCH/locked"
}
unlock() {
	: >"$SCRATCH/unlock"
	wait "$LOCK"
}
meanwhile() { # NAME PATTERN COMMAND...: done when the client has looked at the file, and has not read it
	local name=$1 pattern=$2 run
	shift 2
	head -c 1000 /dev/urandom >"$HERE/second"
	lock
	w --data second -- true >"$SCRATCH/o" 2>&1 &
	run=$!
	until_true 10 taking
	"$@"
	unlock
	wait $run
	tap_is "$name: 125" $? 125
	tap_like "$name: the sentence" "$(cat "$SCRATCH/o")" "$pattern"
}
meanwhile "a file that grows while it is copied" 'second has changed while.*nothing of the job has run' sh -c "echo x >>'$HERE/second'"
meanwhile "one that is written to" 'second has changed while' dd if=/dev/urandom of="$HERE/second" bs=1000 count=1 conv=notrunc status=none
meanwhile "one that is deleted" 'second cannot be read any more .No such file' rm "$HERE/second"
meanwhile "one that is replaced" 'second has changed while' sh -c "cp '$HERE/second' '$HERE/s'; mv '$HERE/s' '$HERE/second'"

# --- the cache: what is used stays, the oldest goes ---
for i in 1 2 3; do head -c 15000000 /dev/urandom >"$HERE/d$i"; done
sleep 0.05
on n2 rm -rf "$KEPT/data/0/cache"
for i in 1 2 3; do w --data d$i -- true; done
w --status-fd 7 --data d1 -- true 7>"$SCRATCH/status"
tap_is "45 MB are in the cache of 52" "$(staged) $(cached)" "0 15000000 3"
w --status-fd 7 --data in -- true 7>"$SCRATCH/status"
tap_is "20 more: the ones used least recently went" "$(jq -r 'select(.data) | .data.evicted_files' "$SCRATCH/status") $(cached)" "1 3"
w --status-fd 7 --data d1 --data d3 -- true 7>"$SCRATCH/status"
tap_is "d1 was used since, and is there" "$(staged)" "0 30000000"
w --data d1 --data d3 -- sh -c 'echo runs; read x' <"$HERE/fifo" >"$SCRATCH/runs" &
exec 8>"$HERE/fifo"
tap_true "a job runs that uses 30 MB" until_true 10 grep -q runs "$SCRATCH/runs"
head -c 30000000 /dev/urandom >"$HERE/d4"
says "what a running job uses is not evicted" 'no room: 30.0 MB would come.*running ones use 30.0 MB' --data d4 -- true
exec 8>&-
wait $!
tap_is "when it is over, there is room" "$(w --data d4 -- wc -c d4)" "30000000 d4"

# --- a user who writes into his own cache ---
nobody_at() { (cd "$HERE" && "$TESTBED" exec n1 --user nobody -- iocom run --node n2 "$@"); }
nobody_at -- sh -c "cd $KEPT/data/65534/cache && mkdir -p d/e && head -c 30000000 /dev/zero >d/e/f && head -c 30000000 /dev/zero >more"
nobody_uses() { on n2 du -sk --apparent-size "$KEPT/data/65534/cache" | cut -f1; }
tap_calc "more than the quota is in it" "$(nobody_uses) > 52429"
before=$(on n2 sh -c "ls -l $KEPT/data/0/cache | sha256sum")
nobody_at --status-fd 7 --data in -- true 7>"$SCRATCH/status"
tap_calc "with the next job it is no more than the quota" "$(nobody_uses) < 52429"
hashes() { on n2 ls "$KEPT/data/65534/cache" | grep "$@" '^[0-9a-f]\{64\}[.]'; }
tap_is "what he put there is gone, his data is not" "$(hashes -vc) $(hashes -c)" "0 2"
tap_is "another user's cache is as it was" "$(on n2 sh -c "ls -l $KEPT/data/0/cache | sha256sum")" "$before"
tap_is "he cannot write into it" "$(nobody_at -- sh -c "echo x >$KEPT/data/0/cache/x" 2>/dev/null; echo $?)" 2

# --- a full disk ---
on n2 sh -c "fallocate -l 200M $KEPT/filler 2>/dev/null || dd if=/dev/zero of=$KEPT/filler bs=1M 2>/dev/null; rm -rf $KEPT/data/0/cache; dd if=/dev/zero of=$KEPT/filler2 bs=1M count=35 2>/dev/null; true"
says "the disk of the node is full" 'the disk of node n2 is full' --data d4 -- true
on n2 rm -f "$KEPT/filler" "$KEPT/filler2"

# --- something dies in the middle ---
not_taking() { ! taking; }
halfway() { on n2 sh -c "test -s $KEPT/data/0/cache/tmp.*"; }
head -c 40000000 /dev/urandom >"$HERE/slow.$$" # 1.6 s at this network's speed
sleep 0.05
truth=$(sha256sum <"$HERE/slow.$$")
lock
w --data slow.$$ -- true 2>/dev/null &
run=$!
until_true 10 taking
kill -9 "$(pgrep -f "iocom run --node n2 --data slow.$$")" 2>/dev/null
wait $run 2>/dev/null
tap_true "the client was killed: nothing goes on" until_true 10 not_taking
unlock
tap_true "no directory is left" until_true 10 none_left
lock
w --data slow.$$ -- true 2>/dev/null &
run=$!
until_true 10 taking
kill -TERM "$(pgrep -f "iocom run --node n2 --data slow.$$")"
wait $run
tap_is "a signal while the data is on the way ends the client" $? 143
tap_true "and what takes it" until_true 10 not_taking
unlock
w --data slow.$$ -- true 2>"$SCRATCH/e" &
run=$!
until_true 10 halfway
kill -9 "$(pgrep -f "^iocom-data --data-take $KEPT/")"
wait $run
tap_is "the process that takes it was killed: 125" $? 125
tap_like "and why" "$(cat "$SCRATCH/e")" 'killed by signal 9'
lock
w --data slow.$$ -- true 2>"$SCRATCH/e" &
run=$!
until_true 10 taking
job=$(on n1 iocom jobs --here --json --all | jq -r '.jobs[0].job')
on n1 iocom kill "$job" >/dev/null 2>&1
wait $run
tap_is "iocom kill while the data is on the way: 125" $? 125
tap_like "and why" "$(cat "$SCRATCH/e")" 'signal 15 while its data was on the way'
unlock
lock
w --data slow.$$ -- true 2>"$SCRATCH/e" &
run=$!
until_true 10 taking
kill -9 "$(ps -o ppid= -p "$(pgrep -f "^iocom-data --data-take $KEPT/")" | tr -d ' ')"
wait $run
tap_isnt "the supervisor was killed: the client does not say 0" $? 0
unlock
tap_true "and nothing goes on" until_true 10 not_taking
giving() { # in this testbed
	local p
	for p in $(pgrep -f '^iocom-data --data-give'); do
		grep -s "/${IOCOM_TESTBED_MARK:-iocom-testbed}/" "/proc/$p/cgroup" >/dev/null && return
	done
	return 1
}
not_giving() { ! giving; }
w --bring made.$$ -- sh -c "mkdir made.$$; head -c 40000000 /dev/urandom >made.$$/x" 2>/dev/null &
run=$!
until_true 10 giving
kill -9 "$(pgrep -f "iocom run --node n2 --bring made.$$")"
wait $run 2>/dev/null
tap_true "a client is killed while it fetches: nothing goes on" until_true 15 not_giving
tap_is "nothing half is left at home" "$(find "$HERE/made.$$" -type f 2>/dev/null | wc -l)" 0
tap_true "and nothing at the node" until_true 20 none_left
w --status-fd 7 --data slow.$$ -- sha256sum slow.$$ 7>"$SCRATCH/status" >"$SCRATCH/o"
tap_is "nothing of these counted as cached, and the next job has all of it" "$(staged) $(cat "$SCRATCH/o")" "40000000 0 ${truth%-}slow.$$"
tap_true "what the killed supervisor left is gone, too" until_true 10 none_left
tap_is "and no cgroup is left" "$(find /sys/fs/cgroup -type d -name 'n1-*.data' | wc -l)" 0
on n2 sh -c "f=\$(ls $KEPT/data/0/cache/*); chmod u+w \$f; echo x >>\$f"
w --status-fd 7 --data slow.$$ -- sha256sum slow.$$ 7>"$SCRATCH/status" >"$SCRATCH/o"
tap_is "a cached file that somebody changed does not count" "$(staged) $(cat "$SCRATCH/o")" "40000000 0 ${truth%-}slow.$$"
# --- the decision: 40 MB take 2.6 s on the way (25 MB/s, two disks of 80) ---
head -c 40000000 /dev/urandom >"$HERE/big"
sleep 0.05
load n1 "$WORK" cpu 1
busy() { field_above n1 n1 run_queue 0.8; }
tap_true "home is busy" until_true 10 busy
goes() { (cd "$HERE" && on n1 iocom place --json --policy least-delay --class data-test --requests 0 --data big --cpu-time "$1" -- wc -c big | jq -r .node); }
goes_there() { [ "$(goes 20)" = n2 ]; }
tap_true "a long job goes, and its data with it" until_true 10 goes_there
tap_is "a short one stays with its data" "$(goes 1)" n1
tap_is "explain counts the way in seconds" "$(cd "$HERE" && on n1 iocom place --policy least-delay --class data-test --requests 0 --data big --cpu-time 20 -- wc -c big | tr '\n' ' ' | grep -o 'n2 lacks 40.0 MB of it: 2.6 s on the way')" "n2 lacks 40.0 MB of it: 2.6 s on the way"
tap_is "it runs there" "$(cd "$HERE" && on n1 iocom run --policy least-delay --class data-test --requests 0 --data big --cpu-time 20 -- sh -c 'hostname; wc -c <big')" "n2
40000000"
tap_is "the next job of the class goes where the data is, a short one, too" "$(goes 1)" n2
touch "$HERE/big"
tap_is "a file that was touched may be another one" "$(goes 1)" n1
brings() { (cd "$HERE" && on n1 iocom place --policy least-delay --class data-test --requests 0 --data big --bring made --cpu-time 20 -- wc -c big | tr '\n' ' ' | grep -o 'Outputs: .* counted in its price'); }
# The run queue of home is measured, and at some readings a job of 20 s would stay: then ask again.
brings_there() { brings >"$SCRATCH/brings" && ! grep 'would come' "$SCRATCH/brings" >/dev/null; }
long_brings() { until_true 10 brings_there; cat "$SCRATCH/brings"; }
tap_like "outputs that nobody has seen yet count nothing" "$(long_brings)" 'Outputs: 0.0 MB come home .no earlier run'
head -c 20000000 /dev/zero >"$HERE/made"
tap_like "what is here under that name counts" "$(long_brings)" 'Outputs: 20.0 MB come home .as much as is there now.: 1.3 s on the way from n2'
makes() { (cd "$HERE" && on n1 iocom run --node n2 --class data-test --data big --bring made -- sh -c "head -c $1 big >made"); }
makes 40000000
tap_like "the class has brought 40 MB" "$(long_brings)" 'Outputs: 40.0 MB come home .the mean of 1 earlier run of its class.: 2.6 s'
tap_is "so a short one stays, although n2 has its data" "$( (cd "$HERE" && on n1 iocom place --json --policy least-delay --class data-test --requests 0 --data big --bring made --cpu-time 1 -- wc -c big | jq -r '.node, .bring_bytes' | tr '\n' ' '))" "n1 40000000 "
(cd "$HERE" && on n1 iocom run --policy nlb --class data-test --data big --bring made -- sh -c 'head -c 10000000 big >made')
tap_like "one that ran at home counts, too" "$(long_brings)" 'Outputs: 25.0 MB come home .the mean of 2 earlier runs'
head -c 60000000 /dev/urandom >"$HERE/sixty" # more than the cache of n2 may have
load n1 "$WORK" cpu 1
busier() { field_above n1 n1 run_queue 1.6; }
tap_true "home is busier" until_true 10 busier
leaves() { (cd "$HERE" && on n1 iocom run --policy least-delay --class data-test --requests 0 --data sixty --cpu-time 30 "$@"); }
tap_is "a node that was not asked for has no room: the job runs at home, once" "$(leaves -v --status-fd 7 -- sh -c 'hostname; wc -c <sixty; pwd' 7>"$SCRATCH/status" 2>"$SCRATCH/e"; echo $?)" "n1
60000000
$HERE
0"
tap_like "it says why, and where" "$(tr '\n' ' ' <"$SCRATCH/e")" 'sends it from n1 to n2.*cache at node n2 has no room.*the job runs at home, where its data is'
tap_is "the states: n2 failed, then n1" "$(jq -r 'select(.state) | .state' "$SCRATCH/status" | tr '\n' ' ')" "placed failed placed started exited "
job=$(leaves --detach -- sh -c 'hostname' 2>/dev/null)
tap_is "a detached one, too" "$(on n1 iocom attach "$job")" n1
rm "$HERE/sixty"
load_stop
on n2 iocom doctor --json >"$SCRATCH/doctor" 2>/dev/null
use=$(jq -c '[.. | objects | select(.check? == "data-cache") | {cache_files, found_files, copied_files, evicted_files, refused}][0]' "$SCRATCH/doctor")
tap_calc "doctor counts the jobs that had no room" "$(jq .refused <<<"$use") == 5"
told() { # NODE: what it hears of n2's caches
	on "$1" iocom nodes --json | jq -c '.nodes[] | select(.name == "n2") | {cache_files, found_files: .cache_hits, copied_files: .cache_misses, evicted_files: .cache_evicted, refused: .cache_refused}'
}
n1_is_told() { [ "$(told n1)" = "$use" ]; }
tap_true "iocom nodes --json has it of each node, at each node" until_true 15 n1_is_told
tap_like "iocom nodes --wide in words" "$(on n1 iocom nodes --wide | tr '\n' ' ' | tr -s ' ')" 'n2: data cache: [0-9.]+ MB in [0-9]+ files; jobs found [0-9]+ files and copied [0-9]+; [0-9]+ were evicted; 5 jobs had no room'
tap_is "a node without data says nothing of it" "$(on n2 iocom nodes --json | jq '.nodes[] | select(.name == "n1") | has("cache_mb")')" false
tap_calc "doctor tells what the caches have" "$(jq '[.. | objects | select(.check? == "data-cache") | .found_bytes] | add // 0' "$SCRATCH/doctor") > 0"
tap_done
