#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Every bound in the agent's sources is in its list of bounds (or is the size of one thing, named
# here), each with a counter that exists, and in the manual.
set -uo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh disable=SC1091
. "$here/tests/lib/tap.sh"
dir=$(mktemp -d /tmp/iocom-bounds-XXXXXX)
trap 'rm -rf "$dir"' EXIT

# Sizes of one text, message, number or answer: larger ones are refused as garbage, or cut.
sizes="LIMITS_LISTED BULLETIN_BYTES_MAX BULLETIN_VALUES_MAX BULLETIN_VECTORS_MAX CLIENT_OUTPUT_MAX CLIENT_REQUEST_MAX
ENTRY_MAX FILE_MAX SPAWN_FDS_MAX HOPS_MAX JOBS_LISTED_MAX JOBS_NAMED_MAX JOBS_REMOTE_MAX LOOK_DOCUMENT_MAX PEER_DOCUMENT_MAX PEER_ORDER_MAX REPORT_PAGE_MAX JOURNAL_OUTCOMES_MAX JOB_REPORTS_MAX LEASE_RESTARTS_MAX MESSAGE_MAX PEER_VALUES_MAX
ARGUMENTS_MAX LINKS_MAX PLACE_MAX METRICS_LABELS_MAX METRICS_LABEL_MAX NESTING_MAX SEAL_MESSAGE_MAX
PEER_TEXT_MAX CONTROL_BODY_MAX GREETING_CLUSTER_MAX GREETING_HEAD_MAX GREETING_HELLO_MAX GREETING_WELCOME_MAX SENTENCE_MAX
BULLETIN_HEAD_MAX VALUE_MAX INTERVAL_MAX_MS RECONNECT_MAX_MS
CAPABILITIES_MAX GAP_MAX GATE_CONTROL_MAX GATE_FDS_MAX GATE_FIELDS_MAX GATE_PACKET_MAX GATE_SENTENCE_MAX NAMES_ADDRESSES_MAX
NAMES_WHY_MAX NET_HTTP_PAGE_MAX NET_HTTP_REQUEST_MAX NET_STREAM_DISCARD_MAX SYNTHETIC_BYTES_MAX SYNTHETIC_LOADS_MAX TCP_URL_MAX ARENAS_MAX
TALKS_JOBS_MAX TALKS_PAIRS_MAX TALKS_RANKS_MAX"
# Shown elsewhere: never the narrower bound (each stream has a source), or who fills them waits.
elsewhere="ADDRESS_LIMIT_MAX GATE_QUESTIONS_MAX GATE_STREAMS_MAX"
bounds() { # FILE...
	grep -hoE '^#define[ \t]+[A-Z_]+_MAX(_MS)?\b' "$@" | awk '{ print $2 }' | sort -u
}
missing() { # the bounds in standard input that are neither in FILE nor sizes
	while read -r name; do
		grep -qw -- "$name" "$1" || grep -qw -- "$name" <<<"$sizes $elsewhere" || echo "$name"
	done | paste -sd ' '
}
# The shim and the launchers are programs of their own: each holds only one job.
mapfile -t sources < <(find "$here/agent" -name '*.[ch]' -not -path '*/shim/*' -not -path '*/tasks/*' -not -path '*/pmix/*')
tap_calc "the agent has bounds" "$(bounds "${sources[@]}" | wc -l) > 20"
tap_is "each is in the agent's list" "$(bounds "${sources[@]}" | missing "$here/agent/front/limits.c")" ""
printf '#define GNOMES_MAX 7\n' >"$dir/new.h"
tap_is "the test notices a bound that is not in the list" "$(bounds "$dir/new.h" | missing "$here/agent/front/limits.c")" GNOMES_MAX

counted() { grep -oE 'COUNTED\([a-z_]+\)' "$here/agent/front/limits.c" | sed 's/.*(//; s/)//' | sort -u; }
uses() { # COUNTER: places that count it
	grep -rhE "counters(\.|->)$1( \+|\+\+|, )" "$here"/agent --include='*.c' | grep -cv 'COUNTED('
}
for counter in $(counted | grep -vx event); do
	tap_isnt "$counter is counted somewhere" "$(uses "$counter")" 0
done
tap_is "the test notices a counter that is not counted" "$(uses gnomes_refused)" 0

names() { grep -oE '^[[:space:]]*\{"[a-z_]+"' "$here/agent/front/limits.c" | tr -d '{" \t'; }
sed -n '/^# BOUNDS/,/^# [A-AC-Z]/p' "$here/agent/iocomd.8.scd" | sed 's/\\//g' >"$dir/page"
tap_is "the manual explains each bound" \
	"$(names | while read -r name; do grep -qw "\*$name\*" "$dir/page" || echo "$name"; done | paste -sd ' ')" ""
tap_done
