#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Parallel jobs on the emulated cluster, in parts:
#   mix     five applications under five policies at several link speeds, beside the simulator and
#           the papers' figures (mix.py says what it does, and how long it takes)
#   start   16 ranks on 4 nodes, by iocom run --mpi and by mpirun over ssh
#   matrix  who sent how much to whom, as measured, beside what the ranks counted
# Usage: bench.sh BUILD PART[,PART...] [OPTIONS of the part...]
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
build=$1 parts=$2 status=0
shift 2
for part in ${parts//,/ }; do
	if [ -e "tests/bench/parallel/$part.py" ]; then
		echo "== $part"
		python3 -B "tests/bench/parallel/$part.py" --build "$build" "$@" || status=1
	elif [ -e "tests/bench/parallel/$part.sh" ]; then
		echo "== $part"
		IOCOM_BUILD=$build bash "tests/bench/parallel/$part.sh" "$@" || status=1
	else
		echo "bench-parallel: there is no part '$part'" >&2
		status=1
	fi
done
exit "$status"
