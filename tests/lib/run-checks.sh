#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Runs the checks part by part, each with a limit in minutes, and ends with `N passed, N failed, N
# skipped`. Usage: run-checks.sh BUILD [PART...]; `all`, or no PART, means the daily parts. Every
# test prints TAP (cmocka's too). The output of each goes to BUILD/log/.
# Of the daily parts those that mostly wait run beside those that compute; then come, one at a
# time, those that measure or decide by how busy the machine is. Named parts run in the given order.
# AGAIN=1: a failed test of those parts that measure a real machine runs once more at the end,
# alone, and that counts; the first failure is listed as UNSTEADY, because such a test has a defect.
# IOCOM_CHECK_UNTIL=SECOND, since the epoch: all shall have ended by then. On a machine so slow that
# there is no time for a part that can be left out, it is, and listed as LEFT OUT, one skipped.
set -uo pipefail
build=${1:-build}
shift
parts=("$@") front=() beside=()
[ ${#parts[@]} -gt 0 ] || parts=(all)
if [ "${parts[0]}" = all ]; then
	front=(cluster attack chaos testbed)
	beside=(static unit sim shim asan fuzz)
	[[ " ${parts[*]:1} " != *" vm "* ]] || beside+=(vm)
	others=" ${parts[*]:1} "
	read -ra others <<<"${others/ vm / }"
	parts=(liveness decisions bpf record mix effect "${others[@]}")
fi
# Tests run programs as other users, who must be able to enter this directory. If a directory
# above is closed to them (a clone in one of mktemp's), everything runs through a mount.
open_tree() {
	local seen
	[ "$(id -u)" -eq 0 ] || return
	! setpriv --reuid 65534 --clear-groups test -r "$PWD/README.md" 2>/dev/null || return
	seen=$(mktemp -d /var/tmp/iocom-tree-XXXXXX)
	mount --bind "$PWD" "$seen" || { rmdir "$seen"; return; }
	# shellcheck disable=SC2064
	trap "cd / && umount -l '$seen' && rmdir '$seen'" EXIT
	cd "$seen" || exit 1
}
open_tree
export CMOCKA_MESSAGE_OUTPUT=TAP IOCOM_BUILD=$PWD/$build
logs=$build/log
mkdir -p "$logs"
passed=0 failed=0 skipped=0
failures=() # failed tests, listed again at the end
read=()     # the logs of this run
unsteady=() # tests that failed at first
left_out=() # parts for which there was no time
# Parts whose tests run beside a real kernel, clocks and disks, which others use as well. In the
# others a failure is a failure.
machine=" shim attack liveness bpf testbed cluster decisions run chaos record mix effect vm "
declare -A command_of part_of
postponed=()

# Minutes that each test of a part may take: far more than it takes, for it guards against a test
# that hangs, and a machine that others use may be eight times slower for a while.
declare -A minutes=([static]=12 [unit]=9 [sim]=9 [fuzz]=30 [shim]=8 [attack]=10 [liveness]=8 [bpf]=4 [testbed]=5 [cluster]=12 [decisions]=10 [run]=10 [chaos]=8 [record]=6 [asan]=30 [mix]=13 [effect]=6 [mpi]=4 [vm]=25 [tsan]=6)

# Seconds that parts of the daily run take on two processors that nobody else uses.
declare -A typical=([static]=100 [unit]=200 [sim]=60 [shim]=130 [asan]=400 [fuzz]=300 [vm]=300 [cluster]=1100 [attack]=200 [chaos]=300 [testbed]=30 [liveness]=60 [decisions]=120 [bpf]=60 [record]=60 [mix]=240 [effect]=120)
can_be_left=" chaos vm record mix effect "
# Seconds kept for the parts that cannot be left out, and for failed tests that run again.
reserve=900

time_left() { echo $((${IOCOM_CHECK_UNTIL:-9999999999} - $(date +%s))); }

# How many hundredths of the typical time the parts so far have taken, at least 100.
expected=0 elapsed=0
slowness() {
	local percent=100
	[ "$expected" -eq 0 ] || percent=$((100 * elapsed / expected))
	echo $((percent > 100 ? percent : 100))
}

# Returns true if there is time for PART, or it cannot be left out.
time_for() { # PART
	local needs=$((${typical[$1]:-0} * $(slowness) / 100)) left
	left=$(time_left)
	[[ $can_be_left == *" $1 "* ]] && [ $((needs + reserve)) -gt "$left" ] || return 0
	left_out+=("$1: it would take some $needs s here, and $left s are left for all")
	skipped=$((skipped + 1))
	echo "  left out: no time"
	return 1
}

# Prints the failed results of a TAP log on one line, each with what the test said of it: cmocka
# prints fail_msg's text before the result, and where it failed behind it.
reasons() { # LOG
	awk '
	/^ERROR: / { said = said $0 "; " }
	/^(not )?ok / { failing = /^not ok/ && !/# SKIP/; lines = 0 }
	failing && /^not ok/ { printf "%s; %s", $0, said }
	failing && /^# [^|]/ && ++lines <= 3 { printf "%s; ", $0 }
	/^(not )?ok / { said = "" }' "$1" | cut -c 1-1200
}

# Remembers how to run a test again.
remember() { # PART NAME COMMAND...
	part_of[$2]=$1
	command_of[$2]=$(printf '%q ' "${@:3}")
}

# Returns true if the failed test NAME is to run again at the end, and notes that.
postpone() { # NAME LOG
	[ -n "${AGAIN:-}" ] && [ -n "${command_of[$1]:-}" ] || return
	[[ $machine == *" ${part_of[$1]} "* ]] || return
	unsteady+=("$1: $(reasons "$2")")
	postponed+=("$1")
	cp "$2" "${2%.log}.first.log"
	echo "  $1 failed and runs again at the end"
}

run_postponed() {
	local again=("${postponed[@]}") name
	AGAIN=
	[ ${#again[@]} -eq 0 ] || echo "== what failed, once more"
	for name in "${again[@]}"; do
		if [ "$(time_left)" -lt 60 ]; then
			failed=$((failed + 1))
			failures+=("$name: it failed at first, and no time is left to run it again")
			continue
		fi
		eval "run ${part_of[$name]} $name ${command_of[$name]}"
	done
}

# Counts a TAP log. A test that died, hung or printed no result counts as one failure.
tally() { # NAME LOG STATUS SECONDS
	local name=$1 log=$2 status=$3 seconds=$4 good bad skip
	skip=$(grep -cE '^(ok|not ok) .*# SKIP|^1\.\.0 # SKIP' "$log")
	# cmocka says "not ok N # SKIP" for a skipped test.
	bad=$(grep -E '^not ok' "$log" | grep -vc '# SKIP')
	good=$(($(grep -cE '^ok' "$log") - $(grep -cE '^ok .*# SKIP' "$log")))
	if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then
		bad=1
		[ "$status" -ne 124 ] || echo "    $name: over its budget"
	elif [ "$((good + bad + skip))" -eq 0 ]; then
		bad=1
		echo "    $name: reported no result"
	fi
	[ "$bad" -eq 0 ] || ! postpone "$name" "$log" || return 0
	passed=$((passed + good)) failed=$((failed + bad)) skipped=$((skipped + skip))
	printf '  %-28s %3d passed, %d failed, %d skipped (%ds)\n' "$name" "$good" "$bad" "$skip" \
		"$seconds"
	grep -E '^(1\.\.0 # SKIP|ok .*# SKIP)' "$log" | sed 's/.*# SKIP/    skipped:/' | sort | uniq -c |
		sed 's/^ *\([0-9]*\) */    \1x /'
	if [ "$bad" -gt 0 ]; then
		failures+=("$name: $(reasons "$log")")
		echo "    --- $log"
		grep -nE -A 12 '^not ok|runtime error|ERROR: AddressSanitizer|SUMMARY|rror:' "$log" |
			head -n 60 | sed 's/^/    /'
		tail -n 15 "$log" | sed 's/^/    | /'
	fi
	read+=("$log")
	# Shows what a test wants people to read: tables of measured numbers; the accuracy table
	# comes at the end.
	grep -E '^# \|' "$log" | grep -vE '\|([0-9]+\.[0-9.]+|kernel)$' | sed 's/^# |/    /'
}

# Tests that were begun and not reported yet, and how many may run at a time. The names of testbeds
# of tests that have company end with the lane and a number.
begun=()
wide=1
lane=

# How many tests run: all jobs of this shell but lanes.
declare -A lanes=()
running() { jobs -rp | grep -cvxF "$(printf '%s\n' "${lanes[@]}")"; }

# Parts run with the sanitizers' build within the daily run: the names of their tests begin with
# this, and each gets the environment that tells it which build to use.
prefix=""
sanitized=()

# Prints the seconds that a test of PART may take.
limit() { # PART
	local left most=$((${minutes[$1]} * 60))
	left=$(time_left)
	[ "$left" -ge 10 ] || left=10
	echo $((left < most ? left : most))
}

run() { # PART NAME COMMAND...
	local part=$1 name=$prefix$2 log
	shift 2
	# A lane ends with the shell that began it.
	[ -z "$lane" ] || kill -0 $$ 2>/dev/null || exit 1
	set -- "${sanitized[@]}" "$@"
	remember "$part" "$name" "$@"
	log=$logs/${name//\//_}.log
	rm -f "$log.end"
	while [ "${#begun[@]}" -gt 0 ] && [ "$(running)" -ge "$wide" ]; do
		wait -n
		tell
	done
	# A shell without job control lets background jobs ignore keyboard signals, so restore
	# them. Each test that needs a testbed gets one with a name of its own.
	(
		began=$SECONDS
		[ "$wide$lane" = 1 ] ||
			export IOCOM_TESTBED_MARK=${IOCOM_TESTBED_MARK:-iocom}-t$lane$((${#read[@]} + ${#begun[@]}))
		timeout --kill-after=20 "$(limit "$part")" env --default-signal=INT,QUIT "$@" \
			>"$log" 2>&1 </dev/null
		echo "$? $((SECONDS - began))" >"$log.end"
	) &
	begun+=("$name")
	[ "$wide" -gt 1 ] || finish
}

# Reports ended tests in the order in which they were begun.
tell() {
	local log status seconds
	while [ "${#begun[@]}" -gt 0 ]; do
		log=$logs/${begun[0]//\//_}.log
		[ -s "$log.end" ] || return
		read -r status seconds <"$log.end"
		rm -f "$log.end"
		tally "${begun[0]}" "$log" "$status" "$seconds"
		begun=("${begun[@]:1}")
	done
}

finish() {
	while [ "${#begun[@]}" -gt 0 ]; do
		[ -s "$logs/${begun[0]//\//_}.log.end" ] || wait -n
		# It was killed from outside. Without a place for its end nothing would ever end.
		[ $? -ne 127 ] || echo "1 0" >"$logs/${begun[0]//\//_}.log.end" || exit 1
		tell
	done
}

# Runs several tests at a time, for tests that disturb no other.
widely() { # COMMAND...
	wide=${width:-$(nproc)}
	[ "$wide" -lt 4 ] || wide=4
	"$@"
	finish
	wide=1
}
# The same for tests that mostly wait.
waiting() { local width=$(($(nproc) * 2)); widely "$@"; }

# A plain command as one test.
run_command() { # PART NAME COMMAND...
	local part=$1 name=$2
	shift 2
	run "$part" "$name" bash -c '"$@" && echo "ok 1 - $0" || { echo "not ok 1 - $0"; exit 1; }' \
		"$name" "$@"
}

run_binaries() { # PART DIRECTORY
	local source name
	for source in tests/"$2"/test_*.c; do
		[ -e "$source" ] || continue
		name=$2/$(basename "$source" .c)
		run "$1" "$name" "$build/tests/$name"
	done
}

run_scripts() { # PART GLOB...
	local script part=$1
	shift
	for script in "$@"; do
		[ -e "$script" ] && run "$part" "$(basename "$(dirname "$script")")/$(basename "$script")" bash "$script"
	done
}

static_checks() {
	run_command static check-layers bash tests/lib/check-layers.sh "$build"
	run_command static check-circles python3 -B tests/lib/check-circles.py "$build" agent
	run_command static check-hardening bash tests/lib/check-hardening.sh "$build"
	run_command static check-names bash tests/lib/check-names.sh
	run_command static check-model python3 -B tests/lib/check-model.py
	run_command static check-model/twins python3 -B tests/lib/check-model.py --self-test
	run_command static format-check make --no-print-directory format-check
	run_command static cppcheck bash tests/lib/lint.sh
}
part_static() { widely static_checks; }
# The daily run has the compiled tests of unit and sim once, with the sanitizers, and the scripts
# once, without them; `make check-unit` has both without, `make asan` both with them.
compiled() { [ -z "$daily" ] || [ "${#sanitized[@]}" -gt 0 ]; }
unit_tests() {
	[ "${#sanitized[@]}" -gt 0 ] || run_scripts unit tests/unit/test_*.sh
	! compiled || run_binaries unit unit
}
part_unit() { widely unit_tests; }
sim_tests() {
	! compiled || run_binaries sim sim
	[ "${#sanitized[@]}" -gt 0 ] || run_scripts sim tests/sim/test_*.sh
}
part_sim() { widely sim_tests; }
part_fuzz() { run fuzz fuzz ${lane:+nice -n 5} bash tests/fuzz/run.sh build/fuzz 3,8; }
# Some tests run again with jobs that can move: such a job is as any other, but for its pids.
shim_tests() {
	local name
	if [ "${#sanitized[@]}" -gt 0 ] || [ -n "${IOCOM_SANITIZED:-}" ]; then
		run_binaries shim shim
		return
	fi
	[ ! -e tests/lib/criu.sh ] || IOCOM_CRIU=$(bash tests/lib/criu.sh) && export IOCOM_CRIU
	run_binaries shim shim
	finish # a test counts the processes that it has left
	for name in streams attach recover spare; do
		[ ! -e "tests/shim/test_$name.c" ] || run shim "shim/test_$name/migratable" env STAGE_MIGRATABLE=1 "$build/tests/shim/test_$name"
	done
}
part_shim() { widely shim_tests; }
# The floods of test_liveness.sh would keep any test beside it waiting.
part_attack() {
	local alone=tests/attack/test_liveness.sh others=(tests/attack/test_*.sh)
	waiting run_scripts attack "${others[@]/$alone/}"
	[ -n "$daily" ] || part_liveness
}
part_liveness() { run_scripts liveness tests/attack/test_liveness.sh; }
# The scripts run iocomd, which other parts run with the sanitizers, too.
part_bpf() {
	run_binaries bpf bpf
	[ -n "${IOCOM_SANITIZED:-}" ] || run_scripts bpf tests/bpf/test_*.sh
}
# Two machines at once: each mostly runs one program that waits.
part_vm() {
	local suite began_all=$SECONDS
	declare -A pids=()
	run_command vm vm/fetch bash tests/vm/fetch.sh
	# shellcheck source=tests/vm/suites.sh
	. tests/vm/suites.sh
	export IOCOM_VM_SECONDS=${IOCOM_VM_SECONDS:-$(limit vm)}
	[ -n "$daily" ] || export IOCOM_VM_LONG=1 IOCOM_VM_LIMIT=${IOCOM_VM_LIMIT:-600}
	for suite in "${suites[@]}"; do
		while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n; done
		remember vm "vm/$suite" bash tests/vm/guest.sh "$build" "$suite"
		bash tests/vm/guest.sh "$build" "$suite" >"$logs/vm_$suite.log" 2>&1 </dev/null &
		pids[$suite]=$!
	done
	remember vm vm/nfs bash tests/vm/nfs.sh "$build" trixie
	while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n; done
	bash tests/vm/nfs.sh "$build" trixie >"$logs/vm_nfs.log" 2>&1 </dev/null
	tally vm/nfs "$logs/vm_nfs.log" $? "$((SECONDS - began_all))"
	for suite in "${suites[@]}"; do
		wait "${pids[$suite]}"
		tally "vm/$suite" "$logs/vm_$suite.log" $? "$((SECONDS - began_all))"
	done
}
part_testbed() { run_scripts testbed tests/testbed/test_*.sh; }
# Decisions depend on how busy this machine is, so nothing may run beside them.
part_cluster() {
	local alone=tests/cluster/test_decisions.sh others=(tests/cluster/test_*.sh)
	[ -n "$daily" ] || part_decisions
	waiting run_scripts cluster "${others[@]/$alone/}"
}
part_decisions() { run_scripts decisions tests/cluster/test_decisions.sh; }
part_run() { run_scripts run tests/cluster/test_run.sh; }
# The judge comes first: what it accepts must be right.
part_chaos() {
	run chaos chaos/judge python3 -B tests/chaos/test_judge.py
	run chaos chaos/move_judge python3 -B tests/chaos/test_move_judge.py
	run chaos chaos/bed python3 -B tests/chaos/test_bed.py
	run chaos chaos/chaos.sh env "ROUNDS=${ROUNDS:-20}" bash tests/chaos/chaos.sh
	run chaos chaos/test_gangs python3 -B tests/chaos/test_gangs.py
	run chaos chaos/gangs.sh env ROUNDS=5 bash tests/chaos/gangs.sh
	run chaos chaos/moves.sh env "CASES=dump:mover restore:target-agent held:source-agent held:target-shim dump:link-short lie:claims" bash tests/chaos/moves.sh
	run chaos chaos/moving.sh env MOVES=10 FAULTS=10 SEED=3 bash tests/chaos/moving.sh
}
part_record() { run_scripts record tests/cluster/record.sh; }
part_mpi() { run_scripts mpi tests/cluster/mpi.sh; }
part_mix() { run_scripts mix tests/cluster/mix.sh; }
# Its jobs compete for the disks, so nothing may run beside it.
part_effect() {
	run effect effect/units python3 -B tests/effect/test_units.py
	run_scripts effect tests/effect/test_*.sh
}
part_tsan() { run_scripts tsan tests/tsan/test_*.sh; }
# The short form: without the shim, the monitor, the scripts and the cluster, which `make asan` has.
part_asan() {
	local part build=build/asan prefix=""
	run_command asan asan-build ${lane:+nice -n 5} make --no-print-directory -j"$(nproc)" BUILD=$build \
		SANITIZE=address,undefined tests
	prefix=asan/
	local sanitized=(env IOCOM_SANITIZED=1 "IOCOM_BUILD=$PWD/$build")
	for part in unit sim; do "part_$part"; done
}

took=""
run_parts() { # PART...
	local part began_part
	for part in "$@"; do
		echo "== $part (budget ${minutes[$part]} min a test)"
		time_for "$part" || continue
		began_part=$SECONDS
		"part_$part"
		took+="$part $((SECONDS - began_part)), "
		elapsed=$((elapsed + SECONDS - began_part))
		expected=$((expected + ${typical[$part]:-0}))
	done
}

# Runs parts in a shell of their own, beside what follows; `join` prints what they said and counts
# it. What only computes gives way to what waits.
apart() { # LANE PART...
	(
		lane=$1
		shift
		took="("
		run_parts "$@"
		took="${took%, } beside), "
		state >"$logs/lane.$lane.state"
	) >"$logs/lane.$1" 2>&1 </dev/null &
	lanes[$1]=$!
}

# Prints what a lane has found as commands that add it to another shell's.
state() {
	local name
	echo "((passed += $passed, failed += $failed, skipped += $skipped))"
	for name in failures read unsteady postponed left_out; do
		local -n list=$name
		[ ${#list[@]} -eq 0 ] || echo "$name+=(${list[*]@Q})"
	done
	for name in "${postponed[@]}"; do
		printf 'part_of[%q]=%q command_of[%q]=%q\n' "$name" "${part_of[$name]}" "$name" \
			"${command_of[$name]}"
	done
	echo "took+=${took@Q}"
}

join() { # LANE
	local log=$logs/lane.$1
	wait "${lanes[$1]}"
	cat "$log"
	if [ -s "$log.state" ]; then
		# shellcheck disable=SC1090
		. "$log.state"
	else
		failed=$((failed + 1))
		failures+=("lane $1: ended early")
	fi
}

daily=
if [ ${#beside[@]} -gt 0 ]; then
	daily=yes
	rm -f "$logs"/lane.*
	apart b "${beside[@]}"
	run_parts "${front[@]}"
	join b
fi
run_parts "${parts[@]}"
began_part=$SECONDS
run_postponed
took+="again $((SECONDS - began_part))"
accuracy=$(bash tests/lib/accuracy-table.sh "${read[@]}")
[ -z "$accuracy" ] || printf '== the monitor beside known truth\n%s\n' "$accuracy"
echo "== $((SECONDS / 60)) min $((SECONDS % 60)) s; seconds a part: $took"
[ ${#left_out[@]} -eq 0 ] || printf 'LEFT OUT %s\n' "${left_out[@]}"
[ ${#unsteady[@]} -eq 0 ] || printf 'UNSTEADY %s\n' "${unsteady[@]}"
[ ${#failures[@]} -eq 0 ] || printf 'FAILED %s\n' "${failures[@]}"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
