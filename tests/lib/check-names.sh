#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Each function of the programs has a name of its own, so that a breakpoint, a profile or a
# search finds one place: a static function says its subject (journal_take, not take).
# Usage: check-names.sh [FOLDER...]
set -euo pipefail
if [ $# -eq 0 ]; then # the simulator is a program of its own
	bash "$0" agent balancer user
	bash "$0" sim
	exit
fi
folders=("$@")
twice=$(find "${folders[@]}" -name '*.c' ! -name main.c -print0 | sort -z |
	xargs -0 awk '/^[a-z][A-Za-z0-9_ *]*[ *][a-z_0-9]+\(/ && !/;[ \t]*$/ {
			name = $0
			sub(/\(.*/, "", name)
			sub(/.*[ *]/, "", name)
			if (name in at && at[name] != FILENAME)
				print name ": " at[name] ", " FILENAME
			at[name] = FILENAME
		}')
if [ -n "$twice" ]; then
	echo "check-names: two functions have one name:" >&2
	echo "$twice" >&2
	exit 1
fi
echo "check-names: each function of ${folders[*]} has a name of its own"
