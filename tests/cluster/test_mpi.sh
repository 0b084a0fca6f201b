#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# `iocom run --mpi`: programs of both MPIs, unchanged, as an ordinary user, on several nodes: how they
# start, what they count beside what was measured, and how they end.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/cluster.sh
mpis=()
for mpi in openmpi mpich; do
	if command -v mpicc.$mpi >/dev/null; then mpis+=("$mpi"); else tap_skip "$mpi" "it is not installed"; fi
done
[ ${#mpis[@]} -gt 0 ] || { tap_done; exit; }
AGENT_OPTIONS="--all-connections yes" cluster_up --nodes 3 --disk 20 --mem 1500
tap_true "every node hears of every other" until_true 10 sees n1 3
programs=$SCRATCH/bin # which ordinary users may enter, wherever this checkout is
mkdir -m 755 "$programs"
for mpi in "${mpis[@]}"; do
	mpicc.$mpi -o "$programs/ends.$mpi" tests/cluster/ends.c
	for app in render molecular semiconductor reaction vortex; do
		cp "$IOCOM_BUILD/tests/apps/$mpi/$app" "$programs/$app.$mpi"
	done
done
chmod 755 "$programs"/*
mkdir -m 777 "$SCRATCH/runs"
# MPICH's UCX takes nodes of one kernel for one machine and shares memory between them.  With TCP alone
# it often hangs in MPI_Finalize, under any launcher, when all is sent: it is told so, and ended, only
# where traffic is measured.
TCP=(UCX_TLS=tcp,self UCX_NET_DEVICES=eth0)
UCX=()
# mpi_run OPTION...: as an ordinary user, six ranks on three nodes; what was printed is in $SCRATCH/o, e.
mpi_run() {
	(cd "$SCRATCH/runs" && exec timeout -k 5 "${SECONDS_MAX:-60}" "$TESTBED" exec n1 --user nobody -- env "${UCX[@]}" \
		iocom run --mpi -n 6 --per-node 2 --oversubscribe "$@" >"$SCRATCH/o" 2>"$SCRATCH/e" </dev/null)
}
kind() { [ "$1" = mpich ] && echo pmi1 || echo pmix; } # MPI: how its ranks find each other
status() { mpi_run "$@"; echo $?; }
iocoms() { grep '^iocom' "$SCRATCH/e"; } # the MPI libraries say things of their own
last() { on n1 iocom jobs --all --limit 0 --json | jq -r '[.jobs[] | select(.tasks >= 1)] | sort_by(.submit_ns) | last.job'; }
# A launcher of this testbed, not of one beside it.
launcher() {
	local pid
	for pid in $(pgrep -f '/iocom-(pmix|tasks) [0-9]'); do
		grep -q "/${IOCOM_TESTBED_MARK:-iocom-testbed}/" "/proc/$pid/cgroup" || continue
		echo "$pid"
		return
	done
}
no_rank_runs() { ! pgrep -f "^$programs/" >/dev/null; }
# What MPICH itself leaves if it is killed within MPI_Init does not count.
nothing_left() { [ -z "$(find /dev/shm -mindepth 1 -maxdepth 1 -user nobody -not -name 'sem.*' \
	-not -name 'mpich_shar_tmp*' -not -name 'ucx_shm_posix_*')" ]; }

for mpi in "${mpis[@]}"; do
	# --- they start, and find each other ---
	for app in render molecular semiconductor reaction vortex; do
		tap_is "$mpi: $app runs and verifies its result" \
			"$(status -- "$programs/$app.$mpi" --verify --phases 3 --compute 5) $(grep -c ' verified$' "$SCRATCH/o")$(iocoms)" "0 1"
	done
	tap_is "$mpi: each rank is who it should be" "$(status -- "$programs/ends.$mpi") $(sort "$SCRATCH/o" | tr '\n' ' ')" \
		"0 0 of 6 sum 15 1 of 6 sum 15 2 of 6 sum 15 3 of 6 sum 15 4 of 6 sum 15 5 of 6 sum 15 "
	tap_is "$mpi: input goes to rank 0" \
		"$(cd "$SCRATCH/runs" && echo hello | "$TESTBED" exec n1 --user nobody -- env "${UCX[@]}" iocom run --mpi -n 6 --oversubscribe -- "$programs/ends.$mpi" read)" \
		"0 read hello"
	tap_is "$mpi: one rank alone" "$(status -n 1 -- "$programs/ends.$mpi") $(cat "$SCRATCH/o")" "0 0 of 1 sum 0"
	tap_is "$mpi: 24 ranks, eight a node" \
		"$(status -n 24 --per-node 8 -- "$programs/ends.$mpi") $(grep -c ' of 24 sum 276$' "$SCRATCH/o")" "0 24"

	# --- how they end ---
	tap_is "$mpi: MPI_Abort's status is the job's" "$(status -- "$programs/ends.$mpi" abort)" 3
	tap_like "... in one sentence" "$(iocoms)" '^iocom run: rank 1 on n[123] called MPI_Abort with status 3; the others were ended$'
	tap_is "$mpi: a rank that ends without MPI_Finalize" "$(status -- "$programs/ends.$mpi" exit)" 1
	tap_like "... in one sentence" "$(iocoms)" '^iocom run: rank 1 on n[123] ended without MPI_Finalize; the others were ended$'
	tap_is "$mpi: a rank that is killed" "$(status -- "$programs/ends.$mpi" kill)" 137
	tap_like "... in one sentence" "$(iocoms)" '^iocom run: rank 1 on n[123] was ended by signal 9 \(KILL\); the others were ended$'
	tap_is "$mpi: a rank that crashes, often after others have noticed" "$(for i in 1 2 3 4; do status -- "$programs/ends.$mpi" crash; iocoms | sed 's/on n[123]/on n/'; done | sort | uniq -c | tr -s ' \n' ' ')" \
		" 4 139 4 iocom run: rank 1 on n was ended by signal 11 (SEGV); the others were ended "
	tap_is "... and wait says the same" "$("$TESTBED" exec n1 --user nobody -- timeout 20 iocom wait last 2>/dev/null; echo $?)" 139
	tap_is "$mpi: a rank that never calls MPI_Init, while others wait for it" \
		"$(status --mpi="$(kind $mpi)" -- sh -c '[ "$IOCOM_TASK" != 1 ] || exit 0; exec "$@"' sh "$programs/ends.$mpi")" 1
	tap_like "... in one sentence" "$(iocoms)" '^iocom run: rank 1 on n[123] ended without MPI_Init, which other ranks have called; the others were ended$'
	tap_is "$mpi: a program that is no MPI program at all" "$(status --mpi="$(kind $mpi)" -- true)" 0
	tap_like "... which is said" "$(iocoms)" '^iocom: none of the 6 ranks called MPI_Init, so each ran alone; a program of '
	tap_is "$mpi: by way of env and nice" "$(status -- env A=1 nice -n 1 "$programs/ends.$mpi") $(grep -c ' of 6 sum 15$' "$SCRATCH/o")$(iocoms)" "0 6"
	tap_is "$mpi: in a script, with its kind" "$(status --mpi="$(kind $mpi)" -- sh -c '"$0"; exit 0' "$programs/ends.$mpi") $(grep -c ' of 6 sum 15$' "$SCRATCH/o")$(iocoms)" "0 6"
	tap_is "... and a rank's own status" "$(status -- "$programs/ends.$mpi" status)" 7
	tap_true "$mpi: no rank is left" until_true 10 no_rank_runs
	tap_true "... and nothing of theirs" until_true 10 nothing_left
	mpi_run -- "$programs/ends.$mpi" wait &
	waiting() { [ "$(pgrep -cf "^$programs/ends.$mpi wait")" -eq 6 ]; }
	tap_true "$mpi: six ranks wait" until_true 20 waiting
	kill -KILL "$(launcher)"
	wait $!
	tap_true "$mpi: a launcher that is killed ends the job" test "$?" -ne 0
	tap_is "... in one sentence" "$(iocoms | wc -l)" 1
	tap_true "... no rank is left" until_true 10 no_rank_runs
	# What a launcher has made that was killed before it had a lock.
	[ "$mpi" = mpich ] || install -d -m 700 -o nobody "/dev/shm/iocom-pmix.test$$"
	tap_is "$mpi: the next job runs, and removes what the killed launcher left" "$(status -- "$programs/ends.$mpi")" 0
	tap_true "... all of it" until_true 10 nothing_left

	tap_is "$mpi: a user may speak of the last job, whose ranks are known though they send nothing by TCP" \
		"$("$TESTBED" exec n1 --user nobody -- sh -c "cd /; iocom profile --matrix --json last" | jq -r '"\(.job) \(.ranks | length)"')" "$(last) 6"

	# --- what they counted, beside what was measured ---
	[ "$mpi" = openmpi ] || UCX=("${TCP[@]}") SECONDS_MAX=6
	mpi_run -- "$programs/molecular.$mpi" --bytes 200000 --phases 20 --compute 5 --count "$SCRATCH/runs/$mpi"
	UCX=() SECONDS_MAX=60
	until_true 10 no_rank_runs
	tap_is "$mpi: who sent how much to whom is within 1 % of what the ranks counted" "$(
		on n1 iocom profile --matrix --csv "$(last)" | awk -F, -v dir="$SCRATCH/runs/$mpi" '
			NR > 1 && $5 == 0 && $3 > 0 { m[$1 "," $2] = $3 }
			END {
				for (r = 0; r < 6; r++)
					while ((getline line < (dir "." r)) > 0) {
						split(line, w, " ")
						p = w[1] "," w[2]
						if (line !~ /^times/ && w[3] > 1000000 && p in m) t[p] = w[3]
					}
				for (p in t) {
					n++
					off = (m[p] - t[p]) / t[p]
					if (off < -0.001 || off > 0.01) bad = bad " " p ":" m[p] "/" t[p]
				}
				print (n >= 3 ? "pairs" bad : "none")
			}')" pairs
done
tap_done
