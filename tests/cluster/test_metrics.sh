#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# /metrics of a real agent: bytes of jobs compared with truth, more jobs than can have a name,
# counters that only grow, the dashboard's names, bad settings, clients that block; and the same
# numbers by `iocom record --csv`.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
build=${IOCOM_BUILD:-$PWD/build}
scrape=$build/tests/tools/scrape
[ "$(id -u)" -eq 0 ] || tap_skip_all "needs root (eBPF)"
[ -e /sys/kernel/btf/vmlinux ] || tap_skip_all "the kernel has no BTF"
root=$(findmnt -n -t cgroup2 -o TARGET | head -n 1)
[ -n "$root" ] || tap_skip_all "cgroup2 is not mounted"

dir=$(mktemp -d /var/tmp/iocom-metrics-XXXXXX)
cgroup=iocom-metrics-$$
port=$(free_ports)
agent='' stays=''
cleanup() {
	[ -z "$stays" ] || { kill "$stays"; wait "$stays"; } 2>/dev/null
	[ -z "$agent" ] || { kill "$agent" 2>/dev/null; wait "$agent" 2>/dev/null; }
	for c in "$root/$cgroup"/* "$root/$cgroup"; do [ ! -d "$c" ] || rmdir "$c"; done
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT TERM
mkdir "$root/$cgroup"

iocomd() { # OPTION...
	exec "$build/iocomd" --name m1 --run-dir "$dir/run" --state-dir "$dir/state" --period 0.5 \
		--shim "$build/iocom-shim" "$@"
}
start() { # OPTION...
	iocomd "$@" >"$dir/out" 2>"$dir/log" &
	agent=$!
	until_true 20 test -S "$dir/run/iocom.sock"
}
stop() {
	kill -TERM "$agent"
	wait "$agent"
	tap_is "$1" "$?" 0
	agent=
}
in_cgroup() { # NAME COMMAND...
	mkdir -p "$root/$cgroup/$1"
	bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$root/$cgroup/$1" "${@:2}"
}
value() { "$scrape" "$port" "$@"; }
# Waits for the next reading, so that it has what ended before.
settle() {
	local was
	was=$(value 'iocom_reading_time_seconds{node="m1"}')
	until_true 20 eval "awk -v a=\"\$(value 'iocom_reading_time_seconds{node=\"m1\"}')\" -v b=$was 'BEGIN { exit !(a > b + 0.9) }'"
}

# Many short tasks elsewhere on the machine can make the agent's documents too long for a while.
record() { # OPTION...
	local try
	for try in 1 2 3 4 5; do
		IOCOM_RUN_DIR=$dir/run "$build/iocom" record --force --delay 0.5 --seconds 2 "$@" 2>"$dir/err" && return
		sleep "$try"
	done
	cat "$dir/err" >&2
	return 1
}

# --- bad settings
tap_like "no such address form" "$(iocomd --metrics-listen localhost:$port 2>&1)" 'expected a numeric address.*localhost'
(iocomd --metrics-listen localhost:$port) >/dev/null 2>&1
tap_is "a bad flag: 2" "$?" 2
tap_like "an address of another machine" "$(iocomd --metrics-listen 192.0.2.1:$port 2>&1)" 'cannot listen at 192.0.2.1 port'
printf '[iocom]\nmetrics_listen = 127.0.0.1:99999\n' >"$dir/conf"
tap_like "a bad port: file and line" "$(iocomd --config "$dir/conf" 2>&1)" 'conf:2.*port from 1'

# --- not asked for: not served
start
tap_true "an agent without metrics is there" test -S "$dir/run/iocom.sock"
"$scrape" "$port" >"$dir/none" 2>&1
tap_is "nobody listens" "$?" 1
stop "it ends well"

# --- the page
# With room for everything else that this machine does.
start --metrics-listen "127.0.0.1:$port" --metrics-max-jobs 10000
tap_like "it says where" "$(cat "$dir/log")" "metrics at http://127.0.0.1:$port/metrics"
tap_true "the page is well-formed" "$scrape" "$port"
tap_like "a second agent cannot have the port" "$("$build/iocomd" --run-dir "$dir/run2" --state-dir \
	"$dir/state2" --shim "$build/iocom-shim" --metrics-listen "127.0.0.1:$port" 2>&1)" "port $port at 127.0.0.1 is in use"
if command -v promtool >/dev/null; then
	"$scrape" "$port" >"$dir/page"
	tap_is "promtool has nothing to say" "$(promtool check metrics <"$dir/page" 2>&1)" ""
else
	tap_skip "promtool has nothing to say" "Prometheus is not installed"
fi

# --- bytes against truth
dd if=/dev/urandom of="$dir/file" bs=1M count=8 conv=fsync status=none
job="node=\"m1\",job_name=\"/$cgroup/reader\""
# One task stays: the monitor may forget a cgroup without tasks while the machine is busy.
(mkdir -p "$root/$cgroup/reader" && echo "$BASHPID" >"$root/$cgroup/reader/cgroup.procs" &&
	exec sleep 300 >/dev/null 2>&1) &
stays=$!
if in_cgroup reader dd if="$dir/file" of=/dev/null bs=1M iflag=direct status=none 2>"$dir/dd"; then
	settle
	got=$(value "iocom_job_explicit_read_bytes_total{$job}")
	# dd itself may have to be read from the disk first.
	tap_calc "8 MiB read directly in a cgroup ($got)" "$got >= 8388608 && $got < 8388608 + 4194304"
	got=$(value "iocom_job_tasks{$job}")
	tap_is "the task that stays is there" "$got" 1
else
	tap_skip "8 MiB read directly in a cgroup" "$(tail -n 1 "$dir/dd")"
	tap_skip "the task that stays is there" "the same"
fi

# --- the same by CSV
tap_true "record --csv from the agent" record --csv jobs --out "$dir/jobs.csv"
tap_is "the same bytes" "$(python3 -c '
import csv, sys
rows = [r for r in csv.DictReader(open(sys.argv[1]), strict=True) if r["job"] == sys.argv[2]]
print(rows[-1]["explicit_read_bytes"] if rows else "no row")' "$dir/jobs.csv" "/$cgroup/reader")" \
	"$(value "iocom_job_explicit_read_bytes_total{$job}")"
kill "$stays"
wait "$stays" 2>/dev/null
stays=
stop "SIGTERM ends the agent"

# --- more jobs than have a name, and counters that only grow
start --metrics-listen "127.0.0.1:$port" --metrics-max-jobs 3
until_true 20 "$scrape" "$port"
# An idle machine would have no disk to show.
dd if=/dev/zero of="$dir/written" bs=64k count=4 conv=fsync status=none
settle
"$scrape" "$port" >"$dir/first"
for i in 1 2 3 4 5 6; do
	in_cgroup "w$i" bash -c 'for ((i = 0; i < 20000; i++)); do :; done'
done
settle
"$scrape" "$port" >"$dir/second"
tap_is "three jobs have a name" "$(value 'iocom_jobs_named{node="m1"}' 'iocom_jobs_named_max{node="m1"}' | tr '\n' ' ')" "3 3 "
check() { python3 - "$dir/first" "$dir/second" "$1"; }
tap_is "four series of jobs, with other" "$(grep -c '^iocom_job_cpu_seconds_total{' "$dir/second")" 4
pages='
import sys
def page(path):
    out = {}
    for line in open(path, encoding="utf-8"):
        if not line.startswith("#"):
            series, value = line.rsplit(" ", 1)
            out[series] = float(value)
    return out
first, second = page(sys.argv[1]), page(sys.argv[2])
def total(p, name): return sum(v for k, v in p.items() if k.startswith(name + "{"))
'
tap_is "no counter goes down, none vanishes" "$(python3 -c "$pages"'
print([k for k in first if "_total{" in k and not (k in second and second[k] >= first[k])])' "$dir/first" "$dir/second")" '[]'
tap_is "named jobs and other together are the node" "$(python3 -c "$pages"'
print([f for f in ("explicit_read_bytes", "cpu_seconds", "minor_faults", "implicit_bytes")
       if abs(total(second, "iocom_job_" + f + "_total") - total(second, "iocom_node_" + f + "_total")) > 1e-6 * total(second, "iocom_node_" + f + "_total")])' "$dir/first" "$dir/second")" '[]'
tap_is "what has no place counts for other" "$(python3 -c "$pages"'
s = "iocom_job_cpu_seconds_total{node=\"m1\",job_name=\"other\"}"
print(second[s] > first.get(s, 0))' "$dir/first" "$dir/second")" True

# --- the dashboard asks for what is there
tap_is "each metric of the dashboard is on the page" "$(python3 - agent/metrics/grafana-dashboard.json "$dir/second" <<'END'
import json, re, sys
board = json.load(open(sys.argv[1]))
page = open(sys.argv[2], encoding="utf-8").read()
there = set(re.findall(r"^# TYPE (\S+)", page, re.M))
texts = [t["expr"] for p in board["panels"] for t in p.get("targets", [])]
texts += [v["definition"] for v in board["templating"]["list"] if "definition" in v]
names = set(n for t in texts for n in re.findall(r"\biocom_[a-z0-9_]+", t))
assert len(names) > 40 and board["schemaVersion"] > 30 and len(texts) > 30
print(sorted(names - there))
END
)" '[]'
if command -v promtool >/dev/null; then
	python3 - agent/metrics/grafana-dashboard.json >"$dir/rules.yml" <<'END'
import json, sys
board = json.load(open(sys.argv[1]))
exprs = [t["expr"] for p in board["panels"] for t in p.get("targets", [])]
for a, b in (("$__rate_interval", "5m"), ("$node", ".*"), ("$job", ".*")):
    exprs = [e.replace(a, b) for e in exprs]
print(json.dumps({"groups": [{"name": "d", "rules": [{"record": "d:%d" % i, "expr": e} for i, e in enumerate(exprs)]}]}))
END
	tap_true "promtool understands each expression" promtool check rules "$dir/rules.yml"
else
	tap_skip "promtool understands each expression" "Prometheus is not installed"
fi

# --- clients that block: the agent goes on and closes their connections
sequence() { IOCOM_RUN_DIR=$dir/run "$build/iocom" nodes --json | jq '.nodes[0].sequence'; }
python3 -c '
import socket, sys, time
idle = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(40)]
print("here", flush=True)
time.sleep(20)' "$port" >"$dir/idle" &
idle=$!
until_true 10 grep -q here "$dir/idle"
was=$(sequence)
tap_true "the agent goes on while 40 clients say nothing" until_true 20 eval "[ \"\$(sequence)\" -gt $((was + 2)) ]"
tap_true "they are cut, and the next one is served" until_true 20 "$scrape" "$port"
tap_true "and counted" until_true 20 eval \
	"[ \"\$(value 'iocom_metrics_requests_total{node=\"m1\",outcome=\"cut\"}')\" -ge 16 ]"

# --- what it costs, by CSV
tap_true "and again" record --csv node --out "$dir/node.csv"
tap_is "what counting costs is in the table of the node" "$(python3 -c '
import csv, sys
r = list(csv.DictReader(open(sys.argv[1]), strict=True))[-1]
print(float(r["events_per_s"]) >= 0 and all(float(r[c]) > 0 for c in ("ns_per_event", "program_core_share", "agent_cpu_ms")))' "$dir/node.csv")" True
echo "# |own cost by CSV: $(python3 -c '
import csv, sys
r = list(csv.DictReader(open(sys.argv[1]), strict=True))[-1]
print(", ".join(c + " " + r[c] for c in ("events_per_s", "ns_per_event", "program_core_share", "sweep_ms", "agent_cpu_ms", "drops", "confidence")))' "$dir/node.csv")"

stop "SIGTERM ends the agent, with clients connected"
kill "$idle" 2>/dev/null
wait "$idle" 2>/dev/null
tap_done
