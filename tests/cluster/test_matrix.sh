#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Who of a parallel job sent how much to whom: iocom profile --matrix beside what the ranks counted
# themselves, of a job that runs and of one that has ended, from any node.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/cluster.sh
AGENT_OPTIONS="--all-connections yes" cluster_up --nodes 3 --disk 0 --mem 1500
tap_true "every node hears of every other" until_true 10 sees n1 3

cp tests/cluster/ranks.py "$SCRATCH/ranks.py"
H1=10.77.0.1 H2=10.77.0.2 H3=10.77.0.3
JOBS=()
start() { # PORT PATTERN BYTES ROUNDS HOST...: a job a node, whose ranks are those with its address
	local k out=$SCRATCH/out.$1
	mkdir -m 777 "$out"
	JOBS=()
	for k in 1 2 3; do
		on n1 iocom run --detach --node "n$k" -- python3 "$SCRATCH/ranks.py" "$1" "$2" "$3" "$4" \
			"$SCRATCH/stop.$1" "$out" "10.77.0.$k" "${@:5}" >"$SCRATCH/id" 2>&1
		JOBS+=("$(grep -oE 'n1-[0-9a-f]+-[0-9]+' "$SCRATCH/id" | head -n 1)")
	done
}
truth() { cat "$SCRATCH/out.$1"/? | sort; }
written() { [ "$(ls "$SCRATCH/out.$1" | grep -cv part)" -eq "$2" ]; }
matrix() { on "${FROM:-n1}" iocom profile --matrix "$@" "${JOBS[@]}"; }
# The ends' own 4 bytes of greeting are in both.
csv() { matrix --csv | tail -n +2 | awk -F, '$3 > 0' | cut -d, -f1-4 | sort; }
is_true() { [ "$(csv)" = "$(truth "$1")" ]; }
ended() { [ "$(on n1 iocom jobs --json | jq '.jobs | length')" -eq 0 ]; }
stop() { touch "$SCRATCH/stop.$1"; until_true 20 ended; }

# --- a ring over three nodes, two ranks each, while it runs
start 7800 ring 50000 20 $H1 $H1 $H2 $H2 $H3 $H3
tap_true "the ring's ranks have sent all" until_true 20 written 7800 6
tap_true "while it runs, the matrix is what they counted: bytes and messages" until_true 20 is_true 7800
stop 7800
tap_is "after its end, too" "$(csv)" "$(truth 7800)"
matrix --json >"$SCRATCH/m.json"
tap_is "it is a ring" "$(jq -r '.pattern | [.name, .share, .coverage] | join(" ")' "$SCRATCH/m.json")" "ring 1 1"
tap_is "half of it stays in nodes" "$(jq '[.ranks[].inside_sent] | add' "$SCRATCH/m.json")" \
	"$(truth 7800 | awk -F, '{ s += $3 } END { print s / 2 }')"
tap_is "each rank is where it ran" "$(jq -c '[.ranks[].part] | unique | length' "$SCRATCH/m.json")" 3
tap_is "all parts have told, from their start on" \
	"$(jq -c '[.parts[] | [.reported, .late, .ended]] | unique' "$SCRATCH/m.json")" '[[true,false,true]]'
tap_is "nothing was refused, or found no room" \
	"$(jq -c '.rest | [.refused_rows, .rest_connections, .unreadable, .outside.sent_bytes]' "$SCRATCH/m.json")" '[0,0,0,0]'
tap_calc "each rank has a burst a round, about" "$(jq '[.ranks[].bursts] | min' "$SCRATCH/m.json") >= 10"
tap_calc "and a phase needs its processor" "$(jq .phases.cpu_ms "$SCRATCH/m.json") > 0 && \
	$(jq .phases.slowest_ms "$SCRATCH/m.json") >= $(jq '.phases | .cpu_ms + .com_ms + .disk_ms' "$SCRATCH/m.json")"
FROM=n3 tap_is "another node's user sees the same" "$(csv)" "$(truth 7800)"
matrix >"$SCRATCH/text"
tap_like "in words" "$(cat "$SCRATCH/text")" "Pattern: ring: 100.0 % of the bytes"
tap_is "no line is too long" "$(awk 'length > 80' "$SCRATCH/text" | wc -l)" 0
tap_like "with the load of each node" "$(cat "$SCRATCH/text")" "L_COM by node, eq. \(6\), at 125 MB/s"
matrix --svg "$SCRATCH/m.svg"
tap_true "as a picture, which is XML" python3 -c 'import sys, xml.dom.minidom as m
assert len(m.parse(sys.argv[1]).getElementsByTagName("title")) == 6' "$SCRATCH/m.svg"

# --- master and slaves, a rank without its part, traffic to the outside
start 7820 master 20000 10 $H1 $H2 $H2 $H3 $H3
tap_true "master and slaves have sent all" until_true 20 written 7820 5
stop 7820
tap_is "what they counted" "$(csv)" "$(truth 7820)"
matrix --json >"$SCRATCH/m.json"
tap_is "the master is recognised" "$(jq -c '.pattern | [.name, .master]' "$SCRATCH/m.json")" '["master-slaves",0]'
tap_is "eq. (5): the master's load is the sum of its slaves'" \
	"$(jq '.ranks | (.[0].l_com_ms * 1e6 | round) == ([.[1:][].l_com_ms] | add * 1e6 | round)' "$SCRATCH/m.json")" true
ALL=("${JOBS[@]}")
JOBS=("${ALL[0]}" "${ALL[1]}")
tap_is "without a node's part, what went there is outside" \
	"$(matrix --json | jq '.rest.outside.sent_bytes')" \
	"$(truth 7820 | awk -F, '$1 == 0 && $2 > 2 { s += $3 } END { print s }')"

# --- all to all
start 7840 all 5000 10 $H1 $H2 $H3 $H3
tap_true "all have sent to all" until_true 20 written 7840 4
stop 7840
tap_is "what they counted" "$(csv)" "$(truth 7840)"
tap_is "all-to-all" "$(matrix --json | jq -r .pattern.name)" all-to-all

# --- both MPIs over iocom rsh, which has a job a node
rsh="$(on n1 sh -c 'command -v iocom') rsh"
printf '#!/bin/sh\nexec %s "$@"\n' "$rsh" >"$SCRATCH/rsh"
chmod 755 "$SCRATCH/rsh"
openmpi=(--allow-run-as-root --mca plm_rsh_agent "$rsh" --mca btl tcp,self,vader
	--mca btl_tcp_if_include 10.77.0.0/24 --host n2:2,n3:2)
# Its UCX takes nodes of one kernel for one machine, and would share memory between them; with TCP
# alone it hangs in MPI_Finalize, when all is sent, so that it is ended once all ranks have printed.
mpich=(-launcher rsh -launcher-exec "$SCRATCH/rsh" -iface eth0 -genv UCX_TLS tcp,self
	-genv UCX_NET_DEVICES eth0 -hosts n2:2,n3:2)
printed() { [ "$(grep -c , "$SCRATCH/printed")" -eq "$1" ]; }
start_mpi() { # openmpi|mpich PATTERN LINES: the true matrix in truth, the jobs in JOBS
	local -n options=$1
	local before pid
	before=$(on n1 iocom jobs --all --json | jq '.jobs | length')
	timeout -k 5 60 "$TESTBED" exec n1 -- "mpirun.$1" "${options[@]}" -n 4 "$SCRATCH/counting.$1" "$2" 65536 60 \
		>"$SCRATCH/printed" 2>"$SCRATCH/mpi.err" &
	pid=$!
	until_true 60 printed "$3"
	[ "$1" != mpich ] || kill "$pid"
	wait "$pid"
	sort "$SCRATCH/printed" >"$SCRATCH/truth"
	until_true 20 ended
	mapfile -t JOBS < <(on n1 iocom jobs --all --json |
		jq -r --argjson n "$before" '.jobs | sort_by(.submit_ns) | .[$n:][].job')
}
off() { # the pairs over links that are not within 1 % of the truth, and the number of all of them
	csv | awk -F, 'NR == FNR { t[$1 "," $2] = $3; next } { m[$1 "," $2] = $3 }
		END { for (p in t) { split(p, r, ","); if (int(r[1] / 2) == int(r[2] / 2)) continue
			n++; e = (m[p] - t[p]) / t[p]; if (e < 0 || e > 0.01) print p, t[p], m[p] }
			print n }' "$SCRATCH/truth" -
}
for mpi in openmpi mpich; do
	if ! command -v mpirun.$mpi >/dev/null || ! mpicc.$mpi -o "$SCRATCH/counting.$mpi" tests/cluster/counting.c; then
		tap_skip "$mpi" "it is not installed"
		continue
	fi
	start_mpi $mpi ring 4
	tap_is "$mpi, a ring: both pairs over links within 1 % of what the ranks counted" "$(off)" 2
	tap_is "it is recognised" "$(matrix --json | jq -r .pattern.name)" ring
	start_mpi $mpi master 6
	tap_is "$mpi, master and slaves: the four pairs over links within 1 %" "$(off)" 4
	tap_is "they are recognised" "$(matrix --json | jq -c '.pattern | [.name, .master]')" '["master-slaves",0]'
done

# --- what is refused
tap_is "a job that is not" "$(on n1 iocom profile --matrix n1-deadbeef-9 2>&1)" \
	"iocom profile: no job of yours named n1-deadbeef-9 was submitted at node n1; \`iocom jobs --all\` lists them"
on n1 iocom profile --matrix >/dev/null 2>&1
tap_is "no job" "$?" 2
on n1 iocom profile --matrix --csv --json x >/dev/null 2>&1
tap_is "two forms" "$?" 2
on n1 iocom profile --svg x >/dev/null 2>&1
tap_is "--svg without --matrix" "$?" 2
matrix --svg /nowhere/x >/dev/null 2>&1
tap_is "a file that cannot be written" "$?" 1
tap_like "another user's job is not shown" \
	"$("$TESTBED" exec n1 --user nobody -- iocom profile --matrix "${JOBS[@]}" 2>&1)" "no job of yours"
tap_done
