#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Two agents built with ThreadSanitizer on loopback (nng's threads, and libmicrohttpd's for
# /metrics): bulletins, jobs both ways, questions, scraping, garbage, a restart.  No race may
# be seen but those in suppressions.txt, each with its reason.  Run it by `make tsan`.
set -uo pipefail
cd "$(dirname "$0")/../.."
. tests/lib/tap.sh
. tests/attack/lib.sh
# TSan's shadow memory wants its place: no random addresses.
setarch -R true 2>/dev/null || tap_skip_all "setarch -R is not allowed here"
export TSAN_OPTIONS="log_path=$DIR/race history_size=4 second_deadlock_stack=1 exitcode=66 suppressions=$PWD/tests/tsan/suppressions.txt"
setarch -R "$IOCOM_BUILD/iocomd" --version >"$DIR/version" 2>&1 ||
	tap_skip_all "ThreadSanitizer does not run here: $(head -n 1 "$DIR/version" "$DIR"/race* 2>/dev/null)"
munge_up alpha
munge_up beta alpha
AGENT_WRAPPER=(setarch -R)
both_up() {
	agent_up alpha 7960 --listen 127.0.0.1 --peers 127.0.0.1:7964 --metrics-listen 127.0.0.1:7963
	agent_up beta 7964 --listen 127.0.0.1 --peers 127.0.0.1:7960 --metrics-listen 127.0.0.1:7967
}
cli() { as $VICTIM setarch -R "$iocom" "$@"; }
scrape() {
	local i
	for ((i = 0; i < 40; i++)); do "$TOOLS/scrape" "$1" >/dev/null || return 1; done
}
both_up
tap_true "two agents hear of each other" until_true 30 eval 'at alpha cli nodes --json | jq -e ".nodes | length == 2"'
until_true 30 eval 'at beta cli nodes --json | jq -e ".nodes | length == 2"'
scrape 7963 &
scrapers=($!)
scrape 7967 &
scrapers+=($!)
ran=0
for i in 1 2 3 4 5 6 7 8; do
	[ "$(at alpha cli run --node beta -- echo $i)" = $i ] && ran=$((ran + 1))
	[ "$(at beta cli run --node alpha -- echo $i)" = $i ] && ran=$((ran + 1))
	[ "$(at beta cli run --node beta -- echo $i)" = $i ] && ran=$((ran + 1))
done
tap_is "24 jobs in three directions" $ran 24
many=()
for i in $(seq 12); do
	at alpha cli run --node beta -- sh -c 'sleep 0.3; head -c 300000 /dev/zero' 2>/dev/null | wc -c >"$DIR/many.$i" &
	many+=($!)
done
at alpha cli top -b -n 3 -d 0.2 --json >/dev/null
wait "${many[@]}"
tap_is "12 at the same time, each with its output" "$(sort "$DIR"/many.* | uniq -c | xargs)" "12 300000"
wait "${scrapers[0]}"
tap_is "metrics were scraped meanwhile" "$?" 0
wait "${scrapers[1]}"
tap_is "of both" "$?" 0
for port in 7960 7961 7962 7963; do
	for _ in 1 2 3; do
		head -c 2000 /dev/urandom >"/dev/tcp/127.0.0.1/$port"
	done
done 2>/dev/null
agent_down beta
tap_is "an agent that stops saw no race" "$?" 0
tap_true "the other notices" until_true 20 eval 'at alpha cli nodes --json | jq -e ".nodes | length == 1"'
agent_up beta 7964 --listen 127.0.0.1 --peers 127.0.0.1:7960
tap_true "and hears it again" until_true 30 eval 'at alpha cli nodes --json | jq -e ".nodes | length == 2"'
until_true 30 eval 'at beta cli nodes --json | jq -e ".nodes | length == 2"'
tap_is "jobs run again" "$(at alpha cli run --node beta -- echo again)" again
agent_down alpha
tap_is "the first saw no race" "$?" 0
agent_down beta
tap_is "nor the one that came again" "$?" 0
races=$(cat "$DIR"/race.* 2>/dev/null | head -n 200)
tap_is "ThreadSanitizer says nothing" "$races" ""
tap_done
