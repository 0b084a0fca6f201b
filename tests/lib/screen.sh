# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# shellcheck disable=SC2154 # dir is set by the script that sources it
# Screens of tmux for tests of what draws on a terminal. Source it with `dir` set to a directory
# of the test's own; screen_cleanup removes all screens.

# Each screen has a server of its own, because a killed one may not have ended yet.
server=0
tm() { tmux -L "${dir##*/}.$server" -f /dev/null "$@"; }
screen_cleanup() {
	tm kill-server 2>/dev/null
	rm -rf "${TMUX_TMPDIR:-/tmp}/tmux-$(id -u)/${dir##*/}."*
}
# Waits until the screen shows a line like REGEX (a minute: then it never will), and prints it.
screen() { # REGEX
	for _ in $(seq 600); do
		tm capture-pane -p >"$dir/screen" 2>/dev/null
		grep -qE -- "$1" "$dir/screen" && break
		sleep 0.1
	done
	cat "$dir/screen"
}
