# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# shellcheck disable=SC2154 # dir is set by whoever sources it
# Screens of tmux for tests of what draws on a terminal.  Source it with `dir`, a directory of
# the test's own, set; screen_cleanup takes all of them away.

# A server of its own for each screen: a killed one may not have left yet.
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
