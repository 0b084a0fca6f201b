#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Prints one table of the monitor's accuracy from the logs of many runs: a line for each case and
# quantity, a column for each kernel. Usage: accuracy-table.sh LOG... Rows come from
# tests/lib/watch.c: "# |case|quantity|truth|measured|error|kernel", or "#
# |case|quantity|degraded: why|kernel". Of equal rows the one with the larger error counts.
set -uo pipefail
[ $# -gt 0 ] || exit 0

kernels=$(sed -nE 's/^# \|.*\|([0-9]+\.[0-9.]+)$/\1/p' "$@" | sort -uV | tr '\n' ' ')
awk -F'|' -v order="$kernels" '
function trim(text) { gsub(/^ +| +$/, "", text); return text }
!/^# \|/ || (NF != 7 && NF != 5) { next }
{
	name = trim($2) SUBSEP trim($3)
	kernel = trim($NF)
	if (kernel !~ /^[0-9]+\.[0-9.]+$/)
		next
	if (!(name in line)) {
		line[name] = ++lines
		names[lines] = name
	}
}
NF == 5 {
	if (trim($4) !~ /^degraded: /)
		next
	cell[name, kernel] = "degraded"
	reasons[++degraded] = kernel ": " trim($2) ", " trim($3) ": " substr(trim($4), 11)
	next
}
{
	error = trim($6)
	size = error + 0 < 0 ? -error : error + 0
	if ((name, kernel) in worst && worst[name, kernel] >= size)
		next
	worst[name, kernel] = size
	value = trim($4)
	if (!(name in truth))
		truth[name] = value
	else if (truth[name] != value)
		truth[name] = "varies"
	cell[name, kernel] = trim($5) == value ? "exact" : trim($5) " " error
}
END {
	if (!lines)
		exit
	count = split(order, kernel_of, " ")
	printf "%-30s  %-24s  %13s", "case", "quantity", "truth"
	for (k = 1; k <= count; k++)
		printf "  %22s", kernel_of[k]
	print ""
	for (i = 1; i <= lines; i++) {
		split(names[i], part, SUBSEP)
		printf "%-30s  %-24s  %13s", part[1], part[2], truth[names[i]]
		for (k = 1; k <= count; k++) {
			name = names[i] SUBSEP kernel_of[k]
			printf "  %22s", name in cell ? cell[name] : "-"
		}
		print ""
	}
	for (i = 1; i <= degraded; i++)
		print "degraded on " reasons[i]
}' "$@"
