#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# What a job can try: to run code in root's programs through its environment, to leave its cgroup,
# to attack the shim and the agent, and to use what it might have inherited.
set -uo pipefail
cd "$(dirname "$0")/../.."
. tests/lib/tap.sh
. tests/attack/lib.sh
PYTHON=/usr/bin/python3
[ -x $PYTHON ] || tap_skip_all "no $PYTHON"
munge_up alpha
munge_up beta alpha
agent_up alpha 7950 --listen 127.0.0.1 --peers 127.0.0.1:7954
agent_up beta 7954 --listen 127.0.0.1 --peers 127.0.0.1:7950
until_true 10 sees alpha 2
until_true 10 sees beta 2
run() { at alpha as $VICTIM "$iocom" run --node beta -- "$@"; }

# --- environment: each process that loads the library or reads the file writes down its user ---
mkdir -m 1777 "$DIR/marks"
cat >"$DIR/mark.c" <<'C'
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
unsigned int la_version(unsigned int version) { return version; }
static void __attribute__((constructor)) mark(void)
{
	char name[64];
	snprintf(name, sizeof(name), MARKS "/loaded.%d", (int)geteuid());
	close(open(name, O_CREAT | O_WRONLY, 0644));
}
C
mark=$DIR/mark.so
if [ -n "${IOCOM_SANITIZED-}" ]; then
	tap_skip "a hostile environment" "a sanitizer must be the first library of all"
elif gcc -shared -fPIC -O1 -DMARKS="\"$DIR/marks\"" -o "$mark" "$DIR/mark.c" 2>"$DIR/cc"; then
	chmod 755 "$mark"
	echo "touch '$DIR/marks/'sourced.\$EUID" >"$DIR/rc"
	mkdir -m 755 "$DIR/python"
	echo "import os; open('$DIR/marks/python.%d' % os.geteuid(), 'w')" >"$DIR/python/sitecustomize.py"
	hostile=(LD_PRELOAD="$mark" LD_AUDIT="$mark" LD_LIBRARY_PATH="$DIR" BASH_ENV="$DIR/rc" ENV="$DIR/rc" IFS=/
		PYTHONPATH="$DIR/python" GCONV_PATH="$DIR" LOCPATH="$DIR" MALLOC_TRACE="$DIR/marks/trace" PATH="$DIR:$PATH"
		SHELLOPTS=xtrace "BASH_FUNC_id%%=() { echo function; }")
	out=$(at alpha as $VICTIM env "${hostile[@]}" "$iocom" run --node beta -- bash -c "$PYTHON -c pass; echo ran" 2>/dev/null)
	tap_is "a job with a hostile environment runs" "$out" ran
	tap_is "library, bash file and python module were loaded by the user, and by nobody else" \
		"$(ls "$DIR/marks" | sort | tr '\n' ' ')" "loaded.$VICTIM python.$VICTIM sourced.$VICTIM "
	row "LD_PRELOAD, LD_AUDIT, BASH_ENV, ENV, PYTHONPATH, IFS ..." yes -
	# On the home node the job comes through the agent's own socket: the result must be the
	# same.
	rm -f "$DIR/marks"/*
	at alpha as $VICTIM env "${hostile[@]}" "$iocom" run --node alpha -- bash -c "$PYTHON -c pass" >/dev/null 2>&1
	tap_is "likewise for a job at home" "$(ls "$DIR/marks" | sort | tr '\n' ' ')" \
		"loaded.$VICTIM python.$VICTIM sourced.$VICTIM "
else
	tap_skip "a hostile environment" "no compiler: $(head -n 1 "$DIR/cc")"
fi

# --- one running job, examined by root ---
at alpha as $VICTIM env EVIL=yes "$iocom" run --node beta -- sh -c 'setsid sleep 771 & exec sleep 770' >/dev/null 2>&1 </dev/null &
pid_of() { pgrep -f "^sleep $1\$"; }
until_true 10 pid_of 771
pid=$(pid_of 770)
shim=$(awk '/^PPid/ {print $2}' "/proc/$pid/status")
tap_is "its parent is a shim" "$(cat "/proc/$shim/comm")" iocom-shim
tap_is "the shim's environment is one variable" "$(tr '\0' '\n' <"/proc/$shim/environ" | cut -d= -f1)" PATH
tap_is "the job's descriptors are 0, 1, 2" "$(ls "/proc/$pid/fd" | tr '\n' ' ')" "0 1 2 "
tap_is "and they are pipes of its own" "$(readlink "/proc/$pid/fd/"* | grep -c '^pipe:')" 3
status() { awk -v f="$1:" '$1 == f {$1 = ""; sub(/^ /, ""); print}' "/proc/$pid/status"; }
tap_is "all its ids are the user's" "$(status Uid) $(status Gid)" "$VICTIM $VICTIM $VICTIM $VICTIM $VICTIM $VICTIM $VICTIM $VICTIM"
tap_is "its groups are those of the user" "$(status Groups | xargs -n 1 | sort | xargs)" "$(id -G nobody | xargs -n 1 | sort | xargs)"
tap_is "it has no capability" "$(status CapInh) $(status CapPrm) $(status CapEff) $(status CapAmb)" \
	"0000000000000000 0000000000000000 0000000000000000 0000000000000000"
tap_is "no signal is blocked or ignored" "$(status SigBlk) $(status SigIgn)" "0000000000000000 0000000000000000"
tap_is "it has no terminal" "$(awk '{print $7}' "/proc/$pid/stat")" 0
tap_is "it leads a session of its own" "$(awk '{print $6}' "/proc/$pid/stat")" "$pid"
tap_is "its working directory is what the user's was" "$(readlink "/proc/$pid/cwd")" /

# --- attacks on shim and agent, each tried by a job of the same user, from inside ---
cat >"$DIR/hand.py" <<PY
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
def ptrace(request, pid):
    if libc.ptrace(request, pid, 0, 0) != 0: raise OSError(ctypes.get_errno(), 'ptrace')
what, pid = sys.argv[1], int(sys.argv[2])
def prctl(*a):
    if libc.prctl(*(list(a) + [0] * (5 - len(a)))) != 0: raise OSError(ctypes.get_errno(), 'prctl')
try: {'attach': lambda: ptrace(16, pid), 'seize': lambda: ptrace(0x4206, pid),
 'memory': lambda: open('/proc/%d/mem' % pid, 'rb'), 'files': lambda: os.listdir('/proc/%d/fd' % pid),
 'environment': lambda: open('/proc/%d/environ' % pid).read(), 'signal': lambda: os.kill(pid, signal.SIGCONT),
 'priority': lambda: os.setpriority(os.PRIO_PROCESS, pid, 10), 'oom': lambda: open('/proc/%d/oom_score_adj' % pid, 'w').write('1000'),
 'limits': lambda: __import__('resource').prlimit(pid, 7, (0, 0)),
 'root': lambda: os.setuid(0), 'group': lambda: os.setgroups([0]), 'securebits': lambda: prctl(28, 0x2f),
 'ambient': lambda: prctl(47, 2, 21), 'tty': lambda: os.open('/dev/tty', os.O_RDWR),
}[what]()
except OSError as e:
    print(what, e)
    sys.exit(77)
PY
hand() { # WHAT PID: 1 when it was denied, and only then
	run $PYTHON "$DIR/hand.py" "$@"
	[ $? -ne 77 ]
}
tap_true "a job may read its owner's own processes" run $PYTHON "$DIR/hand.py" environment "$pid"
tap_true "and signal them" run $PYTHON "$DIR/hand.py" signal "$pid"
for what in attach seize memory files environment signal priority oom limits; do
	denied "job: $what of its shim" hand $what "$shim"
	denied "job: $what of the agent" hand $what "$AGENT_beta"
done
denied "job: setuid(0)" hand root 0
denied "job: setgroups" hand group 0
denied "job: securebits" hand securebits 0
denied "job: an ambient capability" hand ambient 0
denied "job: the terminal of whoever started the agent (TIOCSTI)" hand tty 0

# --- a way out of the cgroup ---
group_of() { cut -d: -f3 "/proc/$1/cgroup" | sort -u; } # PID
tap_like "the job is in its own cgroup, in each hierarchy that has one" "$(group_of "$pid")" '/(jobs|guests)/user@[0-9]+/alpha-'
tap_is "what it forked into a session of its own is there too" "$(group_of "$(pid_of 771)")" "$(group_of "$pid")"
escape() { # a job tries every file that moves or kills processes, and to make a group
	run bash -c 'tried=0; took=0
		while read -r f; do
			tried=$((tried + 1))
			{ echo $$ >"$f"; } 2>/dev/null && took=$((took + 1))
		done < <(find /sys/fs/cgroup -maxdepth 4 \( -name cgroup.procs -o -name tasks -o -name cgroup.threads -o -name cgroup.kill \) 2>/dev/null)
		while read -r d; do
			tried=$((tried + 1))
			mkdir "$d/mine" 2>/dev/null && took=$((took + 1))
		done < <(find /sys/fs/cgroup -maxdepth 2 -type d 2>/dev/null)
		echo $((tried > 3)) $took'
}
out=$(escape)
tap_is "no cgroup takes a job that wants to leave, and none is made" "$out" "1 0"
row "job: leaves its cgroup, kills another, makes one" "$([ "$out" = "1 0" ] && echo yes || echo no)" -
JOB=$(at beta "$iocom" jobs --json | jq -r '.jobs[] | select(.state=="running") | .job' | head -n 1)
"$TOOLS/forge_frame" "kill:$JOB" "$DIR/beta/run/iocom.sock" >/dev/null
tap_true "a killed job's processes are gone, whatever their session" until_true 10 eval '! pid_of 770 && ! pid_of 771'
row "job: setsid to outlive its kill" yes -
run bash -c '(setsid sleep 772 &) ; setsid nohup sleep 773 >/dev/null 2>&1 & trap "" TERM HUP; exit 0'
tap_true "what a job left behind is gone when it has ended" until_true 10 eval '! pid_of 772 && ! pid_of 773'
row "job: double fork, setsid, nohup to outlive its end" yes -
bomb='import os, time
for i in range(200):
    try:
        if os.fork() == 0:
            os.setsid()
            if os.fork(): os._exit(0)
            os.execvp("sleep", ["sleep", "774"])
    except OSError: pass'
run $PYTHON -c "$bomb" >/dev/null 2>&1
tap_true "200 daemons of a job are gone when it has ended" until_true 10 eval '! pid_of 774'
row "job: 200 daemons" yes -
tap_is "no cgroup of a job is left" "$(find /sys/fs/cgroup -maxdepth 6 -type d \( -path "*/jobs/*${JOB%-*}-*" -o -path "*/guests/*${JOB%-*}-*" \) | wc -l)" 0
attack_done
