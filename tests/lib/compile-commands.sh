#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Prints compile_commands.json.  Usage: compile-commands.sh CC CFLAGS
set -euo pipefail
command=$(sed 's/\\/\\\\/g; s/"/\\"/g' <<<"$1 $2")
separator='['
git ls-files '*.c' | grep -v '^bpf/' | while read -r file; do
	printf '%s\n{"directory": "%s", "file": "%s", "command": "%s -c %s"}' \
		"$separator" "$PWD" "$file" "$command" "$file"
	separator=','
done
printf '\n]\n'
