#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# `iocom doctor` on this machine: as root and as nobody, with everything in order and
# with each thing broken in turn.
set -uo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh disable=SC1091
. "$here/tests/lib/tap.sh"
build=${IOCOM_BUILD:-$here/build}
[ "$(id -u)" -eq 0 ] || tap_skip_all "needs root (owners of files, eBPF)"

dir=$(mktemp -d /tmp/iocom-doctor-XXXXXX)
chmod 755 "$dir"
pids=()
cleanup() {
	[ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2>/dev/null
	wait
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT TERM
unset IOCOM_RUN_DIR NO_COLOR
# A copy that nobody can run, and nothing of the machine's own agent.
install -m 755 "$build/iocom" "$dir/iocom"
mkdir "$dir/run" "$dir/bin"
mkdir -m 700 "$dir/state"
config=$dir/iocom.conf
port=$(free_ports)
configure() { # LINE...
	{
		echo "[iocom]"
		echo "name = d1"
		echo "run_dir = $dir/run"
		echo "state_dir = $dir/state"
		printf '%s\n' "$@"
	} >"$config"
}
# The report goes to $dir/json, messages to $dir/err.
doctor() { "$dir/iocom" doctor --json $expects --config "$config" >"$dir/json" 2>"$dir/err"; }
expects=--no-agent
state() { jq -r --arg c "$1" '.checks[] | select(.check == $c) | .state' "$dir/json"; }
says() { jq -r --arg c "$1" '.checks[] | select(.check == $c) | .says' "$dir/json"; }

# --- all in order
configure
doctor
tap_is "root: nothing is broken" "$?" 0
tap_is "one document" "$(jq -s length "$dir/json")" 1
tap_is "it names the calling user" "$(jq .root "$dir/json")" true
for check in kernel btf cgroup config run-dir state-dir; do
	tap_is "$check is ok" "$(state $check)" ok
done
tap_is "kernel" "$(jq -r '.checks[] | select(.check == "kernel") | .release' "$dir/json")" "$(uname -r)"
if [ -e /sys/kernel/btf/vmlinux ]; then
	tap_is "the monitor was really loaded" "$(state monitor)" ok
	tap_like "and it made a reading" "$(says monitor)" 'loads and attaches [0-9]+ programs; first reading after [0-9]+ ms'
fi
tap_is "every column that is not exact has a reason" \
	"$(jq '[.degraded[] | select(.column == "" or .why == "" or .hook == "")] | length' "$dir/json")" 0
tap_is "the block layer's hook feeds what tasks read" \
	"$(jq -r '.hooks[] | select(.hook == "block_bio_queue") | .columns | index("explicit_read_bytes") != null' "$dir/json")" true
if [ -r /proc/sys/kernel/task_delayacct ]; then
	accounted=$(cat /proc/sys/kernel/task_delayacct)
	tap_is "kernel.task_delayacct = $accounted: io_wait_ms" "$(state io-wait)" \
		"$([ "$accounted" = 0 ] && echo degraded || echo ok)"
fi
tap_is "no peers: no ports" "$(state port)" skipped
hooks=$(jq -c '[.hooks[] | {hook, state}]' "$dir/json")

as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
as_nobody "$dir/iocom" doctor --json $expects --config "$config" >"$dir/json" 2>"$dir/err"
tap_is "nobody: nothing is broken" "$?" 0
tap_is "nobody: the monitor is skipped" "$(state monitor)" skipped
tap_is "nobody: sees the same hooks" "$(jq -c '[.hooks[] | {hook, state}]' "$dir/json")" "$hooks"
tap_is "nobody: the configuration" "$(state config)" ok
chmod 600 "$config"
as_nobody "$dir/iocom" doctor --json $expects --config "$config" >"$dir/json" 2>"$dir/err"
tap_is "nobody: a secret configuration is skipped" "$? $(state config)" "0 skipped"

# --- text
text=$("$dir/iocom" doctor --config "$config")
tap_is "a pipe gets no colour" "$(printf %s "$text" | grep -c $'\033')" 0
tap_like "one line a check" "$text" '^ok +kernel +Linux '
terminal() { script -qec "stty cols 80; $1 $dir/iocom doctor --config $config" /dev/null | tr -d '\r'; }
tap_like "a terminal gets colour" "$(terminal "" | head -n 1)" $'^\033\\[32mok'
out=$(terminal "NO_COLOR=1")
tap_is "NO_COLOR" "$(printf %s "$out" | grep -c $'\033')" 0
tap_is "80 columns are enough" "$(printf '%s\n' "$out" | awk 'length > 80' | grep -vc '/[^ ]*$')" 0

# --- configuration
configure "port = many"
doctor
tap_is "bad configuration: broken" "$? $(state config)" "1 broken"
tap_like "bad configuration: where" "$(says config)" "iocom.conf:5: .*number"
tap_is "bad configuration: ports unknown" "$(state port)" skipped
configure
chmod 666 "$config"
doctor
tap_is "a configuration that others may write: broken" "$? $(state config)" "1 broken"
tap_like "a configuration that others may write: the sentence" "$(says config)" 'users other than root can write in .* \(mode 0666\)'
chmod 644 "$config"
chown nobody "$config"
doctor
tap_is "another user's configuration: broken" "$? $(state config)" "1 broken"
tap_like "another user's configuration: the sentence" "$(says config)" 'belongs to uid 65534'
chown root "$config"
mkdir -m 777 "$dir/pam.d"
echo "pam_dir = $dir/pam.d" >>"$config"
doctor
tap_is "PAM's rules where others may write: broken" "$? $(state config)" "1 broken"
tap_like "PAM's rules where others may write: the sentence" "$(says config)" "PAM's directory \(--pam-dir\): users other than root can write in"
chmod 755 "$dir/pam.d"
doctor
tap_is "PAM's rules are root's: ok" "$(state config)" ok
advice() { jq -r --arg c "$1" '.checks[] | select(.check == $c) | .advice' "$dir/json"; }
tap_is "nothing to do about it" "$(advice config)" null
configure "tls_key = /n1.key" "relay_user = iocom"
doctor
tap_is "settings of an older version: ok" "$? $(state config)" "0 ok"
tap_is "and what to do with them" "$(advice config)" "tls_key (line 5 of $config), relay_user (line 6) are not used any more: \
nodes always encrypt what they send each other, without certificates; remove them"
configure
"$dir/iocom" doctor --json --config "$dir/nowhere" >"$dir/json" 2>"$dir/err"
tap_is "a missing configuration: broken" "$? $(state config)" "1 broken"

# --- directories
chmod 755 "$dir/state"
doctor
tap_is "others may read the journal: degraded, not broken" "$? $(state state-dir)" "0 degraded"
chmod 777 "$dir/state"
doctor
tap_is "others may write into the directory: broken" "$? $(state state-dir)" "1 broken"
rmdir "$dir/state"
doctor
tap_is "a directory not made yet: ok" "$? $(state state-dir) $(state space)" "0 ok ok"
touch "$dir/state"
doctor
tap_is "no directory: broken" "$? $(state state-dir)" "1 broken"
rm "$dir/state"
mkdir -m 700 "$dir/state" "$dir/full"
if mount -t tmpfs -o size=4m tmpfs "$dir/full" 2>/dev/null; then
	sed -i "s|^state_dir.*|state_dir = $dir/full/state|" "$config"
	doctor
	tap_is "a disk that is nearly full: broken" "$? $(state space)" "1 broken"
	umount "$dir/full"
else
	tap_skip "a disk that is nearly full: broken" "cannot mount"
fi

# --- munge
mkdir "$dir/munge"
configure "listen = 127.0.0.1" "port = $port" "munge_socket = $dir/munge/socket"
doctor
tap_is "no munged in a cluster: broken" "$? $(state munge)" "1 broken"
tap_like "no munged: the sentence" "$(says munge)" "$dir/munge/socket"
touch "$dir/munge/socket"
doctor
tap_is "another program at munged's socket: broken" "$? $(state munge)" "1 broken"
rm "$dir/munge/socket"
if command -v munged >/dev/null; then
	(umask 077 && head -c 128 /dev/urandom >"$dir/munge/key")
	munged --foreground --force --key-file="$dir/munge/key" --socket="$dir/munge/socket" \
		--pid-file="$dir/munge/pid" --log-file="$dir/munge/log" \
		--seed-file="$dir/munge/seed" >/dev/null 2>&1 &
	pids+=($!)
	until_true 10 test -S "$dir/munge/socket"
	doctor
	tap_is "munged answers: ok" "$? $(state munge)" "0 ok"
else
	tap_skip "munged answers: ok" "munged is not installed"
fi

# --- ports
for check in port port+1 port+2; do
	tap_is "$check is free" "$(state $check)" ok
done
cat >"$dir/listen.py" <<'END'
import os, socket, sys, time
kind, where = sys.argv[1:3]
if kind == "tcp":
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("127.0.0.1", int(where)))
else:
    s = socket.socket(socket.AF_UNIX)
    s.bind(where)
if len(sys.argv) > 3:
    os.setuid(int(sys.argv[3]))
s.listen(8)
print("ready", flush=True)
time.sleep(300)
END
listen() { # KIND WHERE: sets `listener`
	rm -f "$dir/listening" # left by the listener before
	python3 "$dir/listen.py" "$@" >"$dir/listening" &
	listener=$!
	pids+=("$listener")
	until_true 10 test -s "$dir/listening"
}
listen tcp $((port + 1))
doctor
tap_is "a port used by another program: broken" "$? $(state port) $(state port+1) $(state port+2)" "1 ok broken ok"
tap_like "a port used by another program: which one" "$(says port+1)" "in use by python[0-9.]*, pid $listener"
as_nobody "$dir/iocom" doctor --json $expects --config "$config" >"$dir/json"
tap_is "nobody: does not see which program" "$(state port+1)" skipped
kill "$listener" && wait "$listener" 2>/dev/null
configure "listen = 192.0.2.77" "munge_socket = $dir/munge/socket"
doctor
tap_is "an address of another machine: broken" "$? $(state port)" "1 broken"
tap_like "an address of another machine: the sentence" "$(says port)" 'no address 192.0.2.77'

# --- PAM: on or off, the service file, its auth line
part() { jq -c --arg c "$1" --arg p "$2" '.checks[] | select(.check == $c) | .[$p]' "$dir/json"; }
pam() { # SETTING: the state, "on", "found" and "auth" of the report
	configure "pam = $1" "pam_dir = $dir/pam.d"
	doctor
	echo "$? $(state pam) $(part pam on) $(part pam found) $(part pam auth)"
}
mkdir "$dir/pam.d"
tap_is "pam = auto without a file: off" "$(pam auto)" "0 ok false false null"
tap_like "and the report names the file" "$(says pam)" "there is no $dir/pam.d/iocom"
tap_is "pam = on without a file: broken" "$(pam on)" "1 broken true false null"
cp "$here/agent/iocom.pam" "$dir/pam.d/iocom"
tap_is "pam = auto with the installed file: on" "$(pam auto)" "0 ok true true true"
tap_is "pam = off" "$(pam off)" "0 ok false true true"
sed -i '/^auth/d' "$dir/pam.d/iocom"
tap_is "no auth line: degraded" "$(pam yes)" "0 degraded true true false"
tap_like "and the line to add" "$(jq -r '.checks[] | select(.check == "pam") | .advice' "$dir/json")" 'auth required pam_permit.so'
echo "@include more" >>"$dir/pam.d/iocom"
printf '#auth required pam_deny.so\n  -AUTH\toptional pam_permit.so\n' >"$dir/pam.d/more"
tap_is "an auth line of an included file" "$(pam auto)" "0 ok true true true"
echo "@include iocom" >"$dir/pam.d/more"
tap_is "files that include each other" "$(pam auto)" "0 degraded true true false"
chmod 666 "$dir/pam.d/iocom"
tap_is "a service file that others may write: broken" "$(pam auto)" "1 broken true true false"
rm "$dir/pam.d/iocom"
ln -s nowhere "$dir/pam.d/iocom"
tap_is "a link that leads nowhere keeps PAM on: broken" "$(pam auto)" "1 broken true true false"
rm -r "$dir/pam.d"

# --- the audit log
configure
doctor
tap_like "the audit log is on or off" "$(state audit): $(says audit)" '^ok: (on: starts, refusals|off, jobs leave no)|skipped: the kernel does not tell'
as_nobody "$dir/iocom" doctor --json $expects --config "$config" >"$dir/json"
tap_like "nobody: may not ask" "$(state audit): $(says audit)" '^skipped: only root|^ok: off.*no audit$'

# --- criu: run only when root alone can change it
configure
fake_criu() { # DIRECTORY EXIT-OF-CHECK
	mkdir -p "$1"
	cat >"$1/criu" <<END
#!/bin/sh
echo "\$1" >>$dir/ran
[ "\$1" != --version ] || { echo "Version: 3.99"; exit 0; }
echo "the check says so"
exit $2
END
	chmod 755 "$1/criu"
	rm -f "$dir/ran"
}
path=$PATH
fake_criu "$dir/bin" 0
PATH=$dir/bin:$path doctor
tap_is "criu: ok" "$? $(state criu)" "0 ok"
tap_like "criu: version" "$(says criu)" 'Version: 3.99; its check passes'
fake_criu "$dir/bin" 1
PATH=$dir/bin:$path doctor
tap_is "criu's check fails: degraded" "$? $(state criu)" "0 degraded"
tap_like "criu's check fails: the sentence" "$(says criu)" 'the check says so'
fake_criu "$dir/bin" 0
chmod 757 "$dir/bin/criu"
PATH=$dir/bin:$path doctor
tap_is "a criu that others may write: broken" "$? $(state criu)" "1 broken"
chmod 755 "$dir/bin/criu"
chown nobody "$dir/bin"
PATH=$dir/bin:$path doctor
tap_is "a criu in another user's directory: broken" "$? $(state criu)" "1 broken"
chown root "$dir/bin"
chown nobody "$dir/bin/criu"
PATH=$dir/bin:$path doctor
tap_is "another user's criu: broken" "$? $(state criu)" "1 broken"
tap_like "another user's criu: the sentence" "$(says criu)" 'not trusted: .*/bin/criu belongs to uid 65534'
chown root "$dir/bin/criu"
for relative in . ""; do
	(cd "$dir/bin" && PATH=$relative:$path doctor; echo "$? $(state criu)" >"$dir/result")
	tap_is "criu by PATH='$relative:': broken" "$(cat "$dir/result")" "1 broken"
done
tap_is "no untrusted criu was run" "$(cat "$dir/ran" 2>/dev/null)" ""
ln -s "$dir/bin/criu" "$dir/full/criu"
chmod 777 "$dir/bin"
PATH=$dir/full:$path doctor
tap_is "a link to an untrusted criu: broken" "$? $(state criu)" "1 broken"
chmod 755 "$dir/bin"
# Links of another user to bash: started as criu, it would run the script `check` found here.
mkdir -p "$dir/links" "$dir/sticky"
chmod 1777 "$dir/sticky"
echo "echo \$0 >>$dir/ran" >"$dir/links/check"
ln -s "$(command -v bash)" "$dir/links/criu"
ln -s "$dir/links/criu" "$dir/sticky/criu"
chown -h nobody "$dir/links" "$dir/sticky/criu"
for place in links sticky; do
	(cd "$dir/links" && PATH=$dir/$place:$path doctor; echo "$? $(state criu)" >"$dir/result")
	tap_is "another user's link to a program of root, in $place: broken" "$(cat "$dir/result")" "1 broken"
done
tap_is "no program was run through another user's link" "$(cat "$dir/ran" 2>/dev/null)" ""
mkdir "$dir/alias"
ln -s ../bin/../bin/./criu "$dir/alias/criu"
PATH=$dir/alias:$path doctor
tap_is "root's own links lead to a criu: ok" "$? $(state criu)" "0 ok"
ln -sf criu "$dir/alias/criu"
PATH=$dir/alias doctor
tap_is "links in a circle: no criu" "$(state criu)" skipped
printf '#!/bin/sh\nexec sleep 60\n' >"$dir/bin/criu"
PATH=$dir/bin:$path doctor
tap_is "a criu that hangs is killed: degraded" "$? $(state criu)" "0 degraded"
tap_like "a criu that hangs: the sentence" "$(says criu)" 'no end within'
rm "$dir/bin/criu"

# --- can jobs move?  By the agent's criu, not by that of PATH
moving_criu() { # VERSION EXIT-OF-CHECK EXIT-OF-DIRTY-TRACKING
	printf '#!/bin/sh\ncase "$*" in\n--version) echo "Version: %s" ;;\ncheck) echo "it lacks x"; exit %s ;;\n' "$1" "$2" >"$dir/bin/criu"
	printf 'check\\ --feature\\ mem_dirty_track) exit %s ;;\nesac\n' "$3" >>"$dir/bin/criu"
	chmod 755 "$dir/bin/criu"
}
moves() { jq -r '.checks[] | select(.check == "moves") | .'"$1" "$dir/json"; }
without() { setpriv --bounding-set -sys_resource --inh-caps -sys_resource "$dir/iocom" doctor --json --no-agent --config "$config" >"$dir/json"; }
configure "criu = $dir/bin/criu"
moving_criu 4.1 0 0
if [ $((0x$(awk '$1 == "CapEff:" { print $2 }' /proc/self/status) >> 24 & 1)) -eq 1 ]; then
	doctor
	tap_is "jobs of all users move: ok" "$(state moves) $(moves users)" "ok true"
else
	tap_skip "jobs of all users move: ok" "root lacks CAP_SYS_RESOURCE"
fi
without
tap_is "without CAP_SYS_RESOURCE: degraded" "$? $(state moves) $(moves users)" "0 degraded false"
tap_like "the sentence" "$(says moves)" "^criu 4.1 moves running jobs away, but only root's come here"
tap_is "the next step" "$(moves advice)" "start the agent with CAP_SYS_RESOURCE"
tap_is "dirty pages are tracked" "$(moves dirty_tracking)" true
moving_criu 4.1 0 1
doctor
tap_is "they are not" "$(moves dirty_tracking)" false
tap_like "the sentence" "$(says moves)" "does not track what they write"
moving_criu 4.1 1 0
doctor
tap_is "its check fails" "$? $(state moves) $(says moves)" "0 degraded running jobs cannot move: this kernel lacks what criu needs: it lacks x"
moving_criu 3.17 0 0
doctor
tap_like "an old one" "$(state moves) $(says moves)" "^degraded .*criu 3.17 is too old, 4.0 is the oldest"
chmod 757 "$dir/bin/criu"
doctor
tap_like "one that others may write" "$(state moves) $(says moves)" "^degraded running jobs cannot move: .*bin/criu"
rm "$dir/bin/criu"
doctor
tap_like "the setting names none" "$(state moves) $(moves advice)" "^degraded correct .criu."

# --- the network part, while no agent runs
configure "listen = 127.0.0.1" "port = $port" "net_user = root"
doctor --no-agent
tap_like "it may not be root" "$(state network-part) $(says network-part)" '^broken it may not run as root'
configure "listen = 127.0.0.1" "port = $port" "net_user = nobody-of-that-name"
doctor --no-agent
tap_like "its user is not there" "$(state network-part) $(says network-part)" '^broken there is no user nobody-of-that-name'
configure "listen = 127.0.0.1" "port = $port" "net_program = /nowhere/iocom-net"
doctor --no-agent
tap_like "nor its program" "$(state network-part) $(says network-part)" '^broken the program iocom-net is not at /nowhere/iocom-net'
configure "port = $port"
doctor --no-agent
tap_is "a single node needs none" "$(state network-part)" skipped

# --- the owner's rules, while no agent runs
tap_like "no rules" "$(state owner) $(says owner)" '^skipped no rules were set: guests get in'
printf '[owner]\nformat = 1\nstate = closed\nreason = new disks\n' >"$dir/state/owner.rules"
chmod 600 "$dir/state/owner.rules"
doctor --no-agent
tap_is "what the next agent will find" "$(state owner) $(says owner)" "ok when an agent starts: closed: new disks"
as_nobody "$dir/iocom" doctor --json $expects --config "$config" >"$dir/json"
tap_is "which only root may read" "$(state owner) $(says owner)" "skipped only root may read the rules of the node's owner"
chmod 666 "$dir/state/owner.rules"
doctor --no-agent
tap_like "rules that others could have written" "$(state owner) $(says owner)" "^degraded the agent will set the owner's rules aside, and be closed: "
chmod 600 "$dir/state/owner.rules"
sed -i 's/closed/ajar/' "$dir/state/owner.rules"
doctor --no-agent
tap_like "damaged rules" "$(state owner) $(says owner)" "^degraded .* be closed: .*owner.rules:3: .*'ajar'"

# --- the agent
tap_is "no agent, and none is expected: skipped" "$(state agent)" skipped
expects=
doctor
tap_is "no agent where one is expected: broken" "$? $(state agent)" "1 broken"
tap_like "it says what to do" "$(jq -r '.checks[] | select(.check == "agent") | .advice' "$dir/json")" 'systemctl start iocomd'
listen unix "$dir/run/iocom.sock"
doctor
tap_is "an agent that does not answer: broken" "$? $(state agent)" "1 broken"
kill "$listener" && wait "$listener" 2>/dev/null
rm -f "$dir/run/iocom.sock"
if command -v munged >/dev/null && [ -e /sys/kernel/btf/vmlinux ]; then
	configure "listen = 127.0.0.1" "port = $port" "munge_socket = $dir/munge/socket"
	"$build/iocomd" --config "$config" >"$dir/agent.log" 2>&1 &
	agent=$!
	pids+=("$agent")
	until_true 10 test -S "$dir/run/iocom.sock"
	until_true 10 "$dir/iocom" nodes --run-dir "$dir/run"
	doctor
	tap_is "an agent: ok" "$? $(state agent)" "0 ok"
	tap_like "an agent: its version" "$(says agent)" "node d1, iocomd .*, pid $agent, up "
	tap_is "an agent: its losses" "$(state drops)" ok
	if nm "$build/iocom-net" 2>/dev/null | grep __asan_init >/dev/null; then
		tap_like "a network part without a filter" "$(state network-part) $(says network-part)" '^degraded .* no filter of system calls'
	else
		tap_is "an agent: what reads the network has no rights" "$(says network-part | grep -o ', runs as .*' | sed 's/, which .*//; s/nobody$/iocom-net, without capabilities, filtered/')" \
			", runs as iocom-net, without capabilities, filtered"
	fi
	tap_like "it is closed for its damaged rules" "$(state owner) $(says owner)" \
		"^degraded closed: owner's rules unreadable, by iocomd .* ago; guests do not get in .*; 0 are here; damaged rules are kept as owner.rules.damaged-[0-9]+$"
	"$dir/iocom" owner --run-dir "$dir/run" open >"$dir/opened"
	"$dir/iocom" owner --run-dir "$dir/run" cap network=10% >"$dir/opened"
	doctor
	tap_like "opened again, with a cap" "$(state owner) $(says owner)" \
		"^ok open, by root@d1 .* ago; guests get in \\(limited: network 10%\\); 0 are here; cap network=10% by admission only: control groups do not cap networks; damaged"
	tap_is "the rules are in the document" "$(jq -r '.checks[] | select(.check == "owner") | .rules.caps.network.cap' "$dir/json")" 10%
	tap_is "whose it is" "$(jq '.checks[] | select(.check == "network-part") | .pid' "$dir/json")" "$(pgrep -x -P "$agent" iocom-net)"
	tap_like "its ports are its own" "$(says port) $(says port+1) $(says port+2)" \
		"$port .* in use by iocomd, pid $agent.*$((port + 1)) .* pid $agent.*$((port + 2)) .* pid $agent"
	as_nobody "$dir/iocom" doctor --json $expects --config "$config" >"$dir/json"
	tap_is "nobody: asks the agent, too" "$? $(state agent)" "0 ok"
	tap_is "nobody does not see everything" "$(jq -c '[.checks[] | select(.check == "agent") | .status.settings | has("port", "allow-users")]' "$dir/json")" "[true,false]"
	doctor
	tap_is "it runs with the settings of its file" "$(state settings) $(jq -c '.checks[] | select(.check == "settings") | .differs' "$dir/json")" "ok []"
	tap_is "nothing is nearly full" "$(state bounds)" ok
	tap_calc "each bound is shown" "$(jq '[.checks[] | select(.check == "agent") | .status.bounds[] | select((.max == null or .max > 0) and (.used == null or .used >= 0))] | length' "$dir/json") >= 20"
	tap_is "no option but --config, which is checked" "$(jq -c '.checks[] | select(.check == "settings") | .by_options' "$dir/json")" "[]"
	configure "listen = 127.0.0.1" "port = $((port + 100))" "munge_socket = $dir/munge/socket" "deny_users = games"
	doctor
	tap_is "another file than the agent read: degraded" "$? $(state settings)" "0 degraded"
	tap_like "it says what differs" "$(says settings)" \
		"runs with port=$port, which would be '$((port + 100))' now; deny-users=, which would be 'games' now"
	tap_like "the checked ports are the agent's" "$(says port)" "$port .* in use by iocomd, pid $agent"
	as_nobody "$dir/iocom" doctor --json $expects --config "$config" >"$dir/json"
	tap_is "user nobody sees the differences in what it may see" "$(jq -c '[.checks[] | select(.check == "settings") | .differs[].setting]' "$dir/json")" '["port"]'
	configure "port = many"
	"$dir/iocom" doctor --json --config "$config" --run-dir "$dir/run" >"$dir/json"
	tap_is "a file with which the agent could not start" "$(state settings)" degraded
	tap_like "why" "$(says settings)" 'conf:5: .*number'
	kill "$agent" && wait "$agent" 2>/dev/null
	configure "port = $((port + 100))"
	"$build/iocomd" --config "$config" --listen 127.0.0.1 --port "$port" --munge-socket "$dir/munge/socket" \
		--state-dir "$dir/other" >"$dir/agent.log" 2>&1 &
	agent=$!
	pids+=("$agent")
	until_true 10 "$dir/iocom" nodes --run-dir "$dir/run"
	"$dir/iocom" doctor --json --run-dir "$dir/run" >"$dir/json"
	tap_is "options of the agent's command line: a restart keeps them" "$(state settings)" ok
	tap_like "and it says what a start without them would use" "$(says settings)" \
		"with the same options would read now; without them: .*port=$port, which would be '"
	tap_like "these options are what is checked" "$(says port) $(says munge) $(says state-dir)" \
		"$port .* by iocomd.* $dir/munge/socket makes.* $dir/other: root's"
	IOCOM_MUNGE_SOCKET=$dir/munge/socket doctor
	tap_is "the same munged for commands: checked once" "$(state munge) $(state munge-client)" "ok "
	IOCOM_MUNGE_SOCKET=$dir/munge/none doctor
	tap_is "another munged for commands, which does not answer" "$? $(state munge) $(state munge-client)" "1 ok broken"
	tap_like "the name of its socket" "$(says munge-client)" "$dir/munge/none: "
	kill "$agent" && wait "$agent" 2>/dev/null
	rm -f "$dir/run/iocom.sock"
	listen unix "$dir/run/iocom.sock" 65534
	doctor
	tap_is "another's socket is not asked: broken" "$? $(state agent)" "1 broken"
	tap_like "whose" "$(says agent)" "by user 65534, pid $listener, not by root"
else
	tap_skip "an agent: ok" "needs munged and BTF"
fi

# --- usage
for bad in "operand" "--nonsense" "--config"; do
	"$dir/iocom" doctor "$bad" >/dev/null 2>&1
	tap_is "'$bad': usage" "$?" 2
done
tap_like "help" "$("$dir/iocom" doctor --help)" '^usage: iocom doctor'
tap_done
