#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Prints compile_commands.json.  Usage: compile-commands.sh CC CFLAGS INCLUDES SIM-INCLUDES
set -euo pipefail
quoted() { sed 's/\\/\\\\/g; s/"/\\"/g' <<<"$*"; }
general=$(quoted "$1 $2 $3 -Ibpf -Ibuild/bpf")
sim=$(quoted "$1 $2 $4")
separator='['
git ls-files '*.c' | grep -v '^bpf/' | while read -r file; do
	case $file in
	sim/* | tests/sim/* | tests/bench/bench_sim_*) command=$sim ;;
	*) command=$general ;;
	esac
	printf '%s\n{"directory": "%s", "file": "%s", "command": "%s -c %s"}' \
		"$separator" "$PWD" "$file" "$command" "$file"
	separator=','
done
printf '\n]\n'
