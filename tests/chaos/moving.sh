#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Jobs that move MOVES times between two agents at random moments, by a real criu, and now and then
# (one move in FAULTS; 0: never) something is killed meanwhile.  Three jobs run at a time:
#
#   0  attached, reads input that comes slowly        1  detached, a client follows its output
#   2  detached, of the other home, read at its end
#
# When one has ended move_judge.py judges it, and the next one begins.  SEED=N does the same again,
# as far as the machine does.  Prints TAP and a table; KEEP=DIR keeps what the judge saw.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/pair.sh
MOVES=${MOVES:-200} FAULTS=${FAULTS:-10} SEED=${SEED:-$$} LINES_EACH=${LINES_EACH:-3000}
JUDGE="python3 -B $PWD/tests/chaos/move_judge.py" TOOL=$IOCOM_BUILD/tests/tools/movejob
pair_criu || tap_skip_all "there is no criu"
[ -x "$TOOL" ] || tap_skip_all "there is no $TOOL (make tests)"
pair_begin
pair_movers || tap_skip_all "the agents do not start, or do not see each other"
echo "# SEED=$SEED MOVES=$MOVES FAULTS=$FAULTS"
RANDOM=$SEED

KINDS=(source-agent target-agent mover client target-shim shim init)
HOMES=(n1 n1 n2)
JOB=("" "" "") DIR=("" "" "") CLIENT=("" "" "") FEEDER=("" "" "") FAULTED=("" "" "") HUNG=("" "" "")
begun=0 asked=0 refused=0 reattached=0
judged=()

# --- jobs ---
feed() { # FILE: line by line, 25 a second
	local line
	while IFS= read -r line; do echo "$line" && sleep 0.04; done <"$1"
}
client() { # NODE IOCOM-ARGUMENTS...: for long
	local node=$1
	shift
	IOCOM_RUN_DIR=$PAIR/$node/run exec timeout 600 "$IOCOM_BUILD/iocom" "$@"
}
follow() { # SLOT: a client that follows the output, from where the last one was
	local dir=${DIR[$1]} from
	from=$(stat -c %s "$dir/out")
	client "${HOMES[$1]}" attach --from "$from" "${JOB[$1]}" </dev/null >>"$dir/out" 2>>"$dir/err" &
	CLIENT[$1]=$!
}
named() { jq -re 'select(.job) | .job' "$1" 2>/dev/null; }
job_begin() { # SLOT
	local slot=$1 home=${HOMES[$1]} dir program
	dir=$PAIR/job-$((++begun))
	program=("$TOOL" "$dir" "$LINES_EACH" 4000)
	mkdir "$dir"
	: >"$dir/out"
	DIR[slot]=$dir FAULTED[slot]="" HUNG[slot]=false CLIENT[slot]="" FEEDER[slot]=""
	if [ "$slot" -eq 0 ]; then
		seq -f 'line %g of the input' 1 400 >"$dir/input"
		mkfifo "$dir/fifo"
		feed "$dir/input" >"$dir/fifo" &
		FEEDER[slot]=$!
		client "$home" run --node "$home" --migratable --status-fd 3 -- "${program[@]}" input \
			<"$dir/fifo" >"$dir/out" 2>"$dir/err" 3>"$dir/status" &
		CLIENT[slot]=$!
		until_true 20 named "$dir/status"
		JOB[slot]=$(named "$dir/status" | head -n 1)
	else
		JOB[slot]=$(pair_on "$home" run --node "$home" --detach --migratable -- "${program[@]}")
		[ "$slot" -ne 1 ] || follow "$slot"
	fi
	until_true 20 test -s "$dir/trace"
}
# Waits for the client of a job that has ended, as long as it may need, and sets STATUS.
client_end() { # SLOT
	local slot=$1 tries
	gone() { ! kill -0 "${CLIENT[$slot]}" 2>/dev/null; }
	for tries in 1 2 3; do
		until_true 15 gone || { HUNG[slot]=true && kill -9 "${CLIENT[$slot]}"; }
		wait "${CLIENT[$slot]}" 2>/dev/null
		STATUS=$?
		# A client that lost contact, or came while the job was on its way, says so; another
		# one must show the rest.
		[ "$slot" -eq 1 ] && [ "$tries" -lt 3 ] || return 0
		[ "$STATUS" -eq 255 ] || { [ "$STATUS" -eq 125 ] && tail -n 1 "${DIR[$slot]}/err" |
			grep -q 'try again$'; } || return 0
		((++reattached))
		follow "$slot"
	done
}
client_again() {
	kill -TERM "${CLIENT[1]}" && wait "${CLIENT[1]}"
	((++reattached))
	follow 1
}
job_end() { # SLOT: waits for its end and judges it
	local slot=$1 home=${HOMES[$1]} dir=${DIR[$1]} job=${JOB[$1]} waited status
	[ -n "$job" ] || return 0
	IOCOM_RUN_DIR=$PAIR/$home/run timeout 180 "$IOCOM_BUILD/iocom" wait "$job" >/dev/null 2>&1
	waited=$?
	[ "$waited" -ne 124 ] || HUNG[slot]=true
	if [ -n "${CLIENT[$slot]}" ]; then
		client_end "$slot"
		status=$STATUS
	else
		pair_on "$home" attach "$job" >"$dir/out" 2>"$dir/err"
		status=$?
	fi
	[ -z "${FEEDER[$slot]}" ] || kill "${FEEDER[$slot]}" 2>/dev/null
	rm -f "$dir/fifo"
	pair_on "$home" explain --json "$job" >"$dir/explain.json"
	jq -n --arg job "$job" --arg start "$home" --argjson lines "$LINES_EACH" \
		--argjson client "$status" --argjson waited "$waited" --argjson hung "${HUNG[$slot]}" \
		--arg faults "${FAULTED[$slot]}" '{job: $job, lines: $lines, client: $client,
			waited: $waited, hung: $hung, start: $start,
			faults: ($faults | split(" ") | map(select(. != "")))}' >"$dir/facts.json"
	nothing_left() {
		$JUDGE left "$job" "$PAIR_SCOPE" "$dir" "$PAIR/n1/run" "$PAIR/n2/run" >"$dir/left"
		[ ! -s "$dir/left" ]
	}
	until_true 5 nothing_left
	judged+=("$dir")
	$JUDGE judge "$dir" | sed 's/^/# /'
	JOB[slot]=""
	[ ! -s "$dir/left" ] || sed -n 's/^process \([0-9]*\):.*/\1/p' "$dir/left" | xargs -r kill -9
}

# --- moves ---
milliseconds() { sleep "$(printf '0.%03d' "$1")"; }
node_of() { # SLOT: where it runs; empty if it does not
	pair_on "${HOMES[$1]}" explain --json "${JOB[$1]}" |
		jq -r '.record | select(.state | IN("running", "starting", "moving")) | .node'
}
fault() { # WHAT SLOT FROM TO
	local job=${JOB[$2]}
	FAULTED[$2]+="$1 "
	case $1 in
	source-agent) kill -9 "${PAIR_PID[$3]}" ;;
	target-agent) kill -9 "${PAIR_PID[$4]}" ;;
	mover) pair_group_kill "$3" "$job.move" ;;
	client) [ "$2" -ne 1 ] || client_again ;;
	target-shim) pair_shims "$job" | grep -vxF "$shims" | xargs -r kill -9 ;;
	shim) xargs -r kill -9 <<<"$shims" ;;
	init) pair_init "$3" "$job" | xargs -r kill -9 ;;
	esac 2>/dev/null
}
move_one() { # all that is random is drawn first, so that it does not depend on what happens
	local slot=$((RANDOM % 3)) delay=$((RANDOM % 400)) when=$((RANDOM % 600))
	local what="" asker from to mover
	[ "$FAULTS" -eq 0 ] || [ $((RANDOM % FAULTS)) -ne 0 ] || what=${KINDS[RANDOM % ${#KINDS[@]}]}
	[ $((RANDOM % 4)) -ne 0 ] && asker=${HOMES[slot]} || asker=n$((1 + RANDOM % 2))
	[ -z "$what" ] || asker=${HOMES[slot]}
	from=""
	[ -z "${JOB[slot]}" ] || from=$(node_of "$slot")
	if [ -z "$from" ]; then
		job_end "$slot"
		job_begin "$slot"
		from=$(node_of "$slot")
	fi
	to=$(pair_other "$from")
	milliseconds "$delay"
	((++asked))
	if [ -z "$what" ]; then
		pair_on "$asker" migrate "${JOB[slot]}" "$to" >"$PAIR/said" 2>&1 || said_no "$slot"
		return
	fi
	shims=$(pair_shims "${JOB[slot]}")
	pair_on "$asker" migrate "${JOB[slot]}" "$to" >"$PAIR/said" 2>&1 &
	mover=$!
	milliseconds "$when"
	fault "$what" "$slot" "$from" "$to"
	wait "$mover" || said_no "$slot" " ($what killed)"
	pair_again || echo "# the agents do not come back"
}
said_no() { # SLOT [WHY: what was killed]
	local said
	said=$(tail -n 1 "$PAIR/said" | sed 's/^iocom migrate: //')
	((++refused))
	echo "# move $asked: $said${2-}"
	# A job may end while it is asked for.
	over() { [ -z "$(node_of "$1")" ]; }
	[ -n "${2-}" ] || { sleep 0.5 && over "$1"; } || echo "$said" >>"$PAIR/unforced"
}

: >"$PAIR/unforced"
while [ "$asked" -lt "$MOVES" ]; do move_one; done
for slot in 0 1 2; do job_end "$slot"; done

# --- what came of it ---
rows=$($JUDGE table "${judged[@]}")
{
	printf '%s\t%s\n' "moves asked for" "$asked" "moves that iocom migrate said no to" "$refused" \
		"clients that attached again" "$reattached"
	echo "$rows"
} | awk -F'\t' '{ printf "# |%-70s %10s\n", $1, $2 }'
row() { awk -F'\t' -v w="$1" '$1 == w { print $2 }' <<<"$rows"; }
for kind in lost doubled "second copy" "left behind" other; do
	tap_is "no sin: $kind" "$(row "sins: $kind")" 0
done
tap_is "no job is broken" "$(row "jobs broken")" 0
tap_is "no move failed but by a fault" "$(cat "$PAIR/unforced")" ""
tap_calc "and most jobs moved" "$(row "moves resumed") * 2 >= $asked"
if [ -n "${KEEP:-}" ]; then
	mkdir -p "$KEEP" && cp -r "$PAIR"/job-* "$PAIR"/n?/log "$KEEP" 2>/dev/null
fi
tap_done
