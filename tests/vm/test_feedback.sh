#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# The feedback controller on pure cgroup v2, inside a test machine: memory.high is set on the group of
# a job that reads a file again and again, and its cache shrinks; the original is back after kill -9
# and a new start, after a stop, and after a reload that switches it off. dry-run changes nothing, and
# what somebody else writes stays.
set -u
n=0
build=${IOCOM_BUILD:-/build}
ok() { # DESCRIPTION COMMAND...
	what=$1
	shift
	n=$((n + 1))
	if "$@"; then
		echo "ok $n - $what"
	else
		echo "not ok $n - $what"
		"$build/iocom" feedback | sed 's/^/# | /'
		sed 's/^/# log: /' /tmp/feedback.log | tail -n 5
	fi
}
soon() { # SECONDS COMMAND...: until it is true
	end=$(($(date +%s) + $1))
	shift
	until "$@"; do
		[ "$(date +%s)" -lt $end ] || return 1
		sleep 0.5
	done
}
if ! grep -qw memory /sys/fs/cgroup/cgroup.controllers; then
	echo "1..0 # SKIP the kernel's cgroup v2 has no memory controller"
	exit 0
fi
export IOCOM_RUN_DIR=/run/iocom
mkdir -p /etc/iocom /var/tmp/state
chmod 0755 /var/tmp
agent= # its pid
configure() { # MODE MAX
	printf '[iocom]\nname = vm\nrun_dir = /run/iocom\nstate_dir = /var/lib/iocom\nfeedback = %s\n' "$1"
	printf 'feedback_min = 0.01\nfeedback_max = %s\nfeedback_interval_s = 1\nfeedback_persist = 1\n' "$2"
}
begin() { # MODE
	configure "$1" 0.02 >/etc/iocom/iocom.conf
	"$build/iocomd" --shim "$build/iocom-shim" 2>>/tmp/feedback.log &
	agent=$!
	soon 60 answers
}
answers() { "$build/iocom" feedback >/dev/null 2>&1; }
reload() { # MODE
	configure "$1" 0.02 >/etc/iocom/iocom.conf
	kill -HUP $agent
}
stop() { # SIGNAL
	kill "$1" $agent
	wait $agent 2>/dev/null
}
high() { cat "$group/memory.high"; }
high_is() { [ "$(high)" = "$1" ]; }
changed_from() { [ "$(high)" != "$1" ]; }
bounded() { [ "$(high)" != max ]; }
cache() { awk '$1 == "file" { print int($2 / 1048576) }' "$group/memory.stat"; }
cache_above() { [ "$(cache)" -gt "$1" ]; }
cache_below() { [ "$(cache)" -lt "$1" ]; }
shows() { "$build/iocom" feedback | grep -e "$1" >/dev/null; }
written_down() { grep "$(basename "$group") v2 $1 " /var/lib/iocom/feedback.originals >/dev/null 2>&1; }
nothing_written_down() { [ ! -e /var/lib/iocom/feedback.originals ]; }

dd if=/dev/zero of=/var/tmp/data bs=1M count=100 2>/dev/null
sync
echo 3 >/proc/sys/vm/drop_caches
ok "the agent begins without the controller" begin off
job=$("$build/iocom" run --detach --stdin none -- sh -c \
	'until [ -e /tmp/over ]; do cat /var/tmp/data >/dev/null; sleep 0.2; done')
group=/sys/fs/cgroup/iocom/jobs/user@0/$job
ok "a job has a group of its own" test -d "$group"
ok "its cache grows to what it reads" soon 90 cache_above 90
ok "and nothing bounds it" high_is max

reload dry-run
ok "dry-run says what it would do" soon 30 shows 'would be held'
ok "and does not" high_is max
ok "nor writes anything down" nothing_written_down

reload on
ok "on: memory.high is set" soon 30 bounded
ok "the original is written down" written_down max
ok "the job's cache shrinks to its part of the buffer" soon 60 cache_below 60
echo "# cache $(cache) MiB, memory.high $(high)"
ok "the listing says by what" shows 'by memory.high'
ok "and that the controller is at its bound" shows 'at its most'

stop -KILL
ok "kill -9: the bound is still there" bounded
begin off
ok "the next start: the original is back" high_is max
ok "and no file is left" nothing_written_down
ok "the cache grows again" soon 90 cache_above 90

reload on
ok "on again" soon 30 bounded
reload off
ok "switched off: the original is back" soon 10 high_is max

echo 1073741824 >"$group/memory.high"
reload on
ok "an original that is a number is written down" soon 30 written_down 1073741824
stop -TERM
ok "stopped: the original is back" high_is 1073741824

begin on
ok "begun with it on" soon 30 changed_from 1073741824
echo 805306368 >"$group/memory.high"
ok "what somebody else sets is left alone" soon 30 shows 'changed by somebody'
stop -TERM
ok "and stays after the end" high_is 805306368
: >/tmp/over
echo "1..$n"
