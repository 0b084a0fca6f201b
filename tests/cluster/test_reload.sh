#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# SIGHUP reads an agent's settings again: all good ones that need no restart hold at once, a bad
# file changes nothing, and the log says which is which. No job notices.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/pair.sh
pair_begin
pair_munged n1 && pair_munged n2 || tap_skip_all "munged does not start"
chmod 755 "$PAIR"/munge-n*
CONF=$PAIR/iocom.conf
conf() { printf '[iocom]\n%s\n' "$1" >"$CONF.new" && chmod 600 "$CONF.new" && mv "$CONF.new" "$CONF"; }
conf "user_jobs_max = 7"
pair_agent n1 n2 && pair_agent n2 n1 --config "$CONF" || tap_skip_all "the agents do not start"
until_true 20 pair_sees n1 2 || tap_skip_all "the agents do not see each other"

lines() { grep -c "settings are \(not \)\?read again" "$PAIR/n2/log"; }
more() { [ "$(lines)" -gt "$1" ]; }
reload() { # prints what the log says of it
	local before
	before=$(lines)
	kill -HUP "${PAIR_PID[n2]}"
	until_true 10 more "$before" && tail -n "+$(($(grep -n "settings are \(not \)\?read again" "$PAIR/n2/log" | tail -n 1 | cut -d: -f1)))" "$PAIR/n2/log"
}
guest() { pair_user n1 run --node n2 "$@" 2>&1; }
boot=$(pair_on n2 nodes --json | pair_boot n2)
guest -- sh -c 'sleep 15; echo survived' >"$PAIR/long" &
long=$!

tap_like "nothing has changed" "$(reload)" "settings are read again: nothing changed that holds at once"
conf "accept_jobs = no"
tap_like "settings that hold at once" "$(reload)" "settings are read again: changed accept_jobs, user_jobs_max$"
tap_like "they hold at the next admission" "$(guest -- true)" "node n2 refused the job \(owner\): "
closed() { pair_on n1 nodes | grep '^n2: owner: closed: accept_jobs = no' >/dev/null; }
tap_true "and other nodes are told" until_true 5 closed
conf "accept_jobs = yes
deny_users = nobody"
reload >/dev/null
tap_like "a list of users" "$(guest -- true)" "user nobody is not let in \(deny_users\)"
conf "administrators = 65534"
reload >/dev/null
tap_is "without it he is let in" "$(guest -- echo in)" in
tap_like "and is an administrator now" "$(pair_user n1 owner --node n2 close 2>&1)" "^state +closed \(nobody@n1"
pair_user n1 owner --node n2 open >/dev/null

conf "accept_jobs = no
period = soon"
tap_like "a bad file changes nothing, and says why" "$(reload)" \
	"settings are not read again, nothing changed: .*iocom.conf:3: period: expected a number, not 'soon'"
tap_is "not even what was good in it" "$(guest -- echo in)" in
conf "no_such_key = 1"
tap_like "an unknown key" "$(reload)" "nothing changed: .*unknown key 'no_such_key'"
chmod 666 "$CONF"
tap_like "a file that others may write" "$(reload)" "nothing changed: .*iocom.conf"
mv "$CONF" "$CONF.away"
mkfifo -m 600 "$CONF"
tap_like "a pipe that nobody writes into" "$(reload)" "nothing changed: .*is not a plain file"
ln -sf /dev/zero "$CONF"
tap_like "a device without an end" "$(reload)" "nothing changed: .*iocom.conf:1: a NUL byte"
rm -f "$CONF"
tap_like "a file that is gone" "$(reload)" "nothing changed: .*No such file"
tap_is "the agent lives on as it was" "$(guest -- echo in)" in

conf "metrics_max_jobs = 3
cpu_speed = 2
log_level = debug"
out=$(reload)
tap_like "what holds at once does" "$out" "changed administrators, log_level$"
tap_like "what needs a restart is named" "$out" "need a restart .* and do not hold yet: cpu_speed, metrics_max_jobs$"
tap_calc "and does not hold" "$(pair_on n2 nodes --json | jq '.nodes[] | select(.name == "n2") | .cpu_speed') == 1"
wait "$long"
tap_is "a job that ran meanwhile noticed nothing" "$? $(cat "$PAIR/long")" "0 survived"
tap_is "it was the same agent all the time" "$(pair_on n2 nodes --json | pair_boot n2)" "$boot"

# --- the table of these settings is the manual's ---
live=$({
	sed -n 's/^.*{"\([a-z-]*\)", LIVE(.*/\1/p' balancer/settings/settings_live.c
	sed -n 's/^.*X([A-Z]*, [a-z_0-9]*, [a-z_]*, "\([a-z-]*\)",.*/\1/p' balancer/settings/settings_feedback.h
} | tr - _ | sort)
named=$(awk '/^# RELOADING/ { on = 1; next } /^# / { on = 0 } on' agent/iocomd.8.scd | grep -oE '\*[a-z_]+\*' | tr -d '*' | sort -u)
tap_is "the manual names the settings that hold at once" "$named" "$live"
marked=$(sed -n 's/^#\([a-z_]*\) = .*; live$/\1/p' agent/iocom.conf | sort)
tap_is "and so does the sample of the configuration" "$marked" "$live"

pair_stop n1
pair_stop n2
tap_is "both agents stopped well" "$(cat "$PAIR/bad" 2>/dev/null)" ""
tap_done
