# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# shellcheck disable=SC2154 # build and iocom are set by the script that sources it
# `iocom top` on a terminal of its own (tmux), with a played agent that sends made-up numbers.
# Source it after tap.sh, with `build` and `iocom` set; it makes `dir`, the agent's directory.

export LC_ALL=C.UTF-8
dir=$(mktemp -d /tmp/iocom-top-XXXXXX)
agent=
# shellcheck source=tests/lib/screen.sh
. "$(dirname "${BASH_SOURCE[0]}")/screen.sh"
terminal_cleanup() {
	[ -z "$agent" ] || kill "$agent" 2>/dev/null
	screen_cleanup
	rm -rf "$dir"
}
trap terminal_cleanup EXIT

play() { # [DOCUMENTS [TIMES]]
	"$build/tests/tools/topagent" "$dir" "$@" &
	agent=$!
	for _ in $(seq 600); do
		[ -S "$dir/iocom.sock" ] && return
		sleep 0.1
	done
}
stop() {
	kill "$agent" 2>/dev/null
	wait "$agent" 2>/dev/null
	agent=
}
open_screen() { # WIDTH HEIGHT [ENVIRONMENT...]; options of iocom top in $top
	local w=$1 h=$2
	shift 2
	server=$((server + 1))
	tm new-session -d -x "$w" -y "$h" \
		"env LC_ALL=C.UTF-8 $* $iocom top --run-dir $dir -d 0.2 ${top-}; echo left with \$?; stty -a | grep -c ' echo '; sleep 60"
}
# Sends keys, waits for a line like REGEX and checks that it came.
press() { # DESCRIPTION REGEX KEY...
	local what=$1 regex=$2
	shift 2
	tm send-keys "$@"
	tap_like "$what" "$(screen "$regex")" "$regex"
}
