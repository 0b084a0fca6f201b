#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Control groups by the names that people use, on a real kernel: two steps of a Slurm job do I/O
# and are one job with their sum in `iocom top`, /metrics and CSV, as are the containers of a pod;
# look-alikes keep their paths. No Slurm is needed: its directories are below one of the test's.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
build=${IOCOM_BUILD:-$PWD/build}
scrape=$build/tests/tools/scrape
[ "$(id -u)" -eq 0 ] || tap_skip_all "needs root (eBPF)"
[ -e /sys/kernel/btf/vmlinux ] || tap_skip_all "the kernel has no BTF"
root=$(findmnt -n -t cgroup2 -o TARGET | head -n 1)
[ -n "$root" ] || tap_skip_all "cgroup2 is not mounted"

dir=$(mktemp -d /var/tmp/iocom-names-XXXXXX)
top=iocom-names-$$
port=$(free_ports)
id=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
job=$top/system.slice/slurmstepd.scope/job_4711
fake=$top/system.slice/own.scope/job_4711
pod=$top/kubepods/burstable/pod2edf54f8-6911-449f-9abe-3d468a770d6b
unit=iocom-names-$$.service
uid=$((3000000000 + $$)) # no user has it
session=user.slice/user-$uid.slice
agent='' stay=() made=''
cleanup() {
	[ ${#stay[@]} -eq 0 ] || { kill "${stay[@]}"; wait "${stay[@]}"; } 2>/dev/null
	[ -z "$agent" ] || { kill "$agent" 2>/dev/null; wait "$agent" 2>/dev/null; }
	for c in "$top" "$unit" "$session"; do
		[ ! -d "$root/$c" ] || find "$root/$c" -depth -type d -exec rmdir {} +
	done
	[ -z "$made" ] || rmdir "$root/user.slice"
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# One task stays in each group, because the monitor may forget a group without tasks.
inhabit() { # GROUP
	mkdir -p "$root/$1"
	(echo "$BASHPID" >"$root/$1/cgroup.procs" && exec sleep 600 >/dev/null 2>&1) &
	stay+=($!)
}
read_in() { # GROUP MEGABYTES
	bash -c 'echo $$ >"$0/cgroup.procs" && exec dd "$@"' "$root/$1" if="$dir/file" of=/dev/null \
		bs=1M "count=$2" iflag=direct status=none
}
top_of() { IOCOM_RUN_DIR=$dir/run "$build/iocom" top "$@"; }
reading() { top_of --json -n 1 -d 1 >"$dir/reading"; }
row() { # FILTER: of the one job named so
	jq -r ".jobs[] | select(.name == \"slurm:4711\") | $1" "$dir/reading"
}

dd if=/dev/urandom of="$dir/file" bs=1M count=8 conv=fsync status=none
inhabit "$job/step_0/user/task_0"
inhabit "$job/step_1/user/task_0"
inhabit "$fake/step_0"
inhabit "$pod/$id"
inhabit "$pod/${id%f}0"
inhabit "$top/docker-$id.scope"
inhabit "$top/docker-xyz.scope"
inhabit "$top/machine.slice/libpod-$id.scope/container"
inhabit "$top/lxc.monitor.web"
inhabit "$unit/own"
mkdir "$root/user.slice" 2>/dev/null && made=yes
inhabit "$session/session-1.scope"
inhabit "$session/user@$uid.service/app.slice"
"$build/iocomd" --name m1 --run-dir "$dir/run" --state-dir "$dir/state" --period 0.5 \
	--shim "$build/iocom-shim" --metrics-listen "127.0.0.1:$port" --metrics-max-jobs 10000 \
	>"$dir/out" 2>"$dir/log" &
agent=$!
until_true 30 test -S "$dir/run/iocom.sock"
until_true 30 "$scrape" "$port"

read_in "$job/step_0/user/task_0" 8
read_in "$job/step_1/user/task_0" 4
read_in "$fake/step_0" 2
both() { reading && [ "$(row .explicit_read_bytes)" -ge 12582912 ]; }
tap_true "two steps of a Slurm job are one job with their sum" until_true 30 both
# Each dd may have to be read from the disk, too.
tap_calc "and not with more than they did" "$(row .explicit_read_bytes) < 12582912 + 8388608"
tap_is "the tasks of both" "$(row .tasks)" 2
tap_is "its path is beside the name" "$(row .job)" "/$job"
tap_is "no step has a row" "$(jq -r --arg job "/$job/" \
	'[.jobs[] | select((.job // "") | startswith($job))] | length' "$dir/reading")" 0
tap_is "tasks say whose they are" "$(jq -r --argjson pid "${stay[1]}" \
	'.tasks[] | select(.pid == $pid) | .name + " " + .job' "$dir/reading")" "slurm:4711 /$job"
tap_is "two containers of a pod are one row" "$(jq -r \
	'.jobs[] | select(.name == "pod:2edf54f8-6911-449f-9abe-3d468a770d6b") | .tasks' "$dir/reading")" 2
tap_is "containers by their short ids" "$(jq -r --arg top "/$top/" \
	'.jobs[] | select((.job // "") | startswith($top)) | .name // empty | select(test("docker|podman"))' \
	"$dir/reading" | sort | tr '\n' ' ')" "docker:0123456789ab podman:0123456789ab "
tap_is "a unit with the groups that it made" "$(jq -r --arg unit "$unit" \
	'.jobs[] | select(.name == $unit) | .job + " \(.tasks)"' "$dir/reading")" "/$unit 1"
tap_is "a user's session with its services" "$(jq -r --arg name "session:$uid" \
	'.jobs[] | select(.name == $name) | .job + " \(.tasks)"' "$dir/reading")" "/$session 2"
tap_is "look-alikes keep their paths" "$(jq -r --arg top "/$top/" \
	'.jobs[] | select(.name == null and ((.job // "") | startswith($top))) | .job' "$dir/reading" |
	sort | tr '\n' ' ')" "/$top/docker-xyz.scope /$top/lxc.monitor.web /$fake/step_0 "

tap_like "the table of top has the name" "$(top_of -bj -n 1 -d 0.5 --sort rss -f slurm:4711)" 'slurm:4711'
tap_like "and finds it by its path" "$(top_of -bj -n 1 -d 0.5 --sort rss -f "$job")" 'slurm:4711'
tap_like "the tree has the job's tasks below it" \
	"$(top_of -bjt -n 1 -d 0.5 -f slurm:4711)" "${stay[0]} sleep"

series="iocom_job_explicit_read_bytes_total{node=\"m1\",job_name=\"slurm:4711\"}"
metric() { awk "BEGIN { exit !(\"$("$scrape" "$port" "$series")\" + 0 >= 12582912) }"; }
tap_true "/metrics has the sum by name" until_true 30 metric
tap_is "and no step" "$("$scrape" "$port" | grep -c "job_name=\"/$job")" 0
IOCOM_RUN_DIR=$dir/run "$build/iocom" record --force --delay 0.5 --seconds 2 --csv jobs \
	--out "$dir/jobs.csv" 2>"$dir/err"
tap_is "CSV has name and path" "$(python3 -c '
import csv, sys
rows = [r for r in csv.DictReader(open(sys.argv[1]), strict=True) if r["name"] == "slurm:4711"]
print(rows[-1]["job"] if rows else "no row")' "$dir/jobs.csv")" "/$job"

kill "$agent"
wait "$agent"
tap_is "SIGTERM ends the agent" "$?" 0
agent=
tap_true "without an agent, too" eval "reading && [ -n \"\$(row .job)\" ]"
tap_done
