#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# The page of figures: of any subset of them, well-formed, with the numbers of the JSON files; its
# filter; and how the figures are drawn.
set -uo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh disable=SC1091
. "$here/tests/lib/tap.sh"
build=${IOCOM_BUILD:-$here/build}
dir=$(mktemp -d /tmp/iocom-page-XXXXXX)
trap 'rm -rf "$dir"' EXIT
unset IOCOM_TRACES
cd "$dir" || exit 1

check() { python3 "$here/tests/sim/page_check.py" "$@"; }
# Copies the page without its policy and with another script behind its own, which sets the filter
# and writes what is then to be seen; prints that.
asked() { # SCRIPT
	sed -e 's/<meta http-equiv[^>]*>//' -e "s|</body>|<script>$1</script></body>|" \
		all/index.html >filter.html
	timeout 60 chromium --headless --no-sandbox --disable-gpu --user-data-dir="$dir/chromium" \
		--dump-dom "file://$dir/filter.html" 2>/dev/null |
		sed -n 's/.*id="found">\([^<]*\)<.*/\1/p'
}

for tool in python3 xmllint jq; do
	command -v "$tool" >/dev/null || tap_skip_all "no $tool here"
done
# All kinds of plots: lines, bars, panels of both, one point, time series, scatter; claims with a
# reason in common, claims that are ours, claims that need another figure.
ids="SLD-RE SLD-PM SLD-EX FC-5.3 FC-CTRL FC-REACH FC-CTRL-C ACM-3 ACM-9 ACM-16 ACM-21 ACM-BOUND-15
COM-4c COM-10a COM-10b COM-SENS-RATE COM-BOUND-PORT ZAT-4.1-F3 ZAT-4.1-F5 ZAT-9.4.1-F18 ZAT-QUEUE ZAT-DECAY READ-1"
# shellcheck disable=SC2086 # several ids
timeout 300 "$build/iocom-sim" figures $ids --seeds 2 --set load.jobs=20 --out all >out 2>err
tap_is "figures ID...: 0" "$? $(cat err)" "0 "
tap_true "the page is well-formed" xmllint --noout all/index.html
tap_is "its numbers are those of the JSON, its links and its policy are whole" \
	"$(check page all | grep -v '^#')" ""
tap_like "what was not run is marked" "$(check page all)" '^# headlines: .*[1-9] not run'
timeout 60 "$build/iocom-sim" figures csd --seeds 2 --set load.jobs=20 --out csd >out 2>err
tap_is "figures PAPER: 0" "$? $(cat err)" "0 "
tap_is "all experiments of the paper" "$(cd csd && echo *.json)" "CSD-BOUND.json CSD-PM.json CSD.json"
tap_is "a page without any headline is whole" "$(check page csd | grep -v '^#')" ""
timeout 60 "$build/iocom-sim" figures SLD-RE --seeds 1 --set load.jobs=20 \
	--set 'workload=gen:sld,<b>&"=1' --out evil >out 2>err
tap_is "a setting with markup is refused" "$?" 2

if command -v gnuplot >/dev/null; then
	tap_is "figures: no text on another, all inside, labels at each axis" \
		"$(check svg all/*.svg csd/*.svg)" ""
	tap_is "a logarithmic axis says so, others do not" \
		"$(grep -c 'log scale' all/COM-SENS-RATE.svg all/COM-4c.svg | tr '\n' ' ')" \
		"all/COM-SENS-RATE.svg:0 all/COM-4c.svg:1 "
else
	tap_skip "figures" "no gnuplot here"
fi

# The filter, where a browser is installed.
if command -v chromium >/dev/null; then
	shown=$(asked '')
	total=$(jq -s '[.[].claims[]] | length' all/*.json)
	tap_is "the script shows all first" "$shown" \
		"$total of $total claims, $(wc -w <<<"$ids") figures"
	set_field='function set(n, v) { var f = document.getElementById(\"filter\"); f.elements[n].value = v; f.dispatchEvent(new Event(\"input\")); }'
	n=$(jq -s '[.[].claims[] | select(.verdict == "undecided")] | length' all/*.json)
	tap_like "filter by verdict" "$(asked "$set_field set(\"verdict\", \"undecided\")")" \
		"^$n of $total claims"
	n=$(jq -s '[.[] | select(.id | startswith("COM-")) | .claims[]] | length' all/*.json)
	tap_like "filter by paper" "$(asked "$set_field set(\"paper\", \"COM\")")" \
		"^$n of $total claims"
	tap_like "filter by policy" "$(asked "$set_field set(\"policy\", \"wal-fc\")")" \
		"^[1-9][0-9]* of $total claims, [1-9]"
	tap_like "filter by words" "$(asked "$set_field set(\"text\", \"FEEDBACK without\")")" \
		"^1 of $total claims, 1 figures"
	tap_like "a word that is nowhere" "$(asked "$set_field set(\"text\", \"xyzzy\")")" \
		"^0 of $total claims, 0 figures"
else
	tap_skip "the filter" "no chromium here"
fi
tap_done
