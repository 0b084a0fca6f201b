#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Completion: what `iocom complete` prints without an agent, and what bash then offers.
set -uo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh disable=SC1091
. "$here/tests/lib/tap.sh"
iocom=${IOCOM_BUILD:-$here/build}/iocom
dir=$(mktemp -d /tmp/iocom-complete-XXXXXX)
trap 'rm -rf "$dir"' EXIT
export IOCOM_RUN_DIR=$dir/none

complete_() { "$iocom" complete "$@" 2>"$dir/err"; }
listed() { "$iocom" --help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'; }
tap_is "commands: as the help lists them" "$(complete_ commands)" "$(listed)"
tap_is "options run: with those of placement" "$(complete_ options run | grep -cxE -- '--(pty|policy|class|detach)')" 4
tap_is "short and long ones" "$(complete_ options top | grep -cxE -- '-n|--count|-H|--node')" 4
tap_is "options of each command are options of its help" \
	"$(for c in $(listed); do case $c in sim | replay) continue ;; esac
		complete_ options "$c" | while read -r o; do "$iocom" "$c" --help | grep -F -- "$o" >/dev/null || echo "$c $o"; done; done)" ""
tap_is "options of no command: none" "$(complete_ options frob; echo $?)" 0
tap_is "policies: each is taken" \
	"$(complete_ policies | while read -r p; do
		printf '{"nodes":[{},{}],"job":{}}' | "$iocom" place --view - --policy "$p" >/dev/null 2>&1 || echo "$p"; done)" ""
tap_calc "there are many" "$(complete_ policies | wc -l) > 15"
for what in jobs running nodes classes; do
	tap_is "$what without an agent: silent" "$(complete_ $what; echo "$? $(cat "$dir/err")")" "0 "
done
for bad in "" frob "options" "options --frob" "jobs nodes"; do
	# shellcheck disable=SC2086 # several words, or none
	tap_is "complete $bad: 2" "$(complete_ $bad; echo $?)" 2
done

# --- bash ---
mkdir "$dir/bin"
# An agent's knowledge, played; everything else is iocom's own.
cat >"$dir/bin/iocom" <<END
#!/bin/sh
case "\$*" in
"complete jobs") printf '%s\n' n1-4f1c09aa-17 n2-0badcafe-3 last ;;
"complete running") printf '%s\n' n1-4f1c09aa-17 last ;;
"complete nodes") printf '%s\n' n1 n2 ;;
"complete classes") printf '%s\n' make sort ;;
*) exec "$iocom" "\$@" ;;
esac
END
chmod 755 "$dir/bin/iocom"
# offers WORDS...: what bash offers for the last one, sorted, in one line.
offers() {
	PATH=$dir/bin:$PATH bash --norc -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _iocom
		printf "%s\n" "${COMPREPLY[@]}"' - "$here/balancer/iocom.bash-completion" "$@" 2>&1 | sort | paste -sd ' '
}
tap_is "a command" "$(offers iocom ex)" explain
tap_is "all commands" "$(offers iocom '' | tr ' ' '\n')" "$(listed | sort)"
tap_is "its options" "$(offers iocom jobs --)" "--all --here --json --limit --parts --run-dir --wide"
tap_is "jobs" "$(offers iocom wait '')" "last n1-4f1c09aa-17 n2-0badcafe-3"
tap_is "those of one node" "$(offers iocom explain n2)" n2-0badcafe-3
tap_is "kill: those that run" "$(offers iocom kill -INT '')" "last n1-4f1c09aa-17"
tap_is "nodes" "$(offers iocom run --node '')" "n1 n2"
tap_is "of top, too" "$(offers iocom top -H n)" "n1 n2"
tap_is "of rsh" "$(offers iocom rsh '')" "n1 n2"
tap_is "classes" "$(offers iocom run --class m)" make
tap_like "policies" "$(offers iocom place --policy iocm)" '^iocm-pm iocm-re iocm-re-hom$'
tap_like "after --: commands of the system" "$(offers iocom run -- mktem)" '^mktemp'
tap_is "not options" "$(offers iocom run -- ls --de)" ""
tap_is "nor before it" "$(offers iocom run --deta)" --detach
tap_is "bash has the function for iocom" \
	"$(bash --norc -c '. "$1"; complete -p iocom' - "$here/balancer/iocom.bash-completion")" "complete -o default -F _iocom iocom"
tap_done
