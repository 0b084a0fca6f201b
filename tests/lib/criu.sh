#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Prints the path of a criu that is new enough (4.0): this machine's own, or Debian 13's with its
# libraries, unpacked into `criu.sh [DIR]` (build/criu) and not installed. Exits with 1 if there is
# none.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
dir=${1:-build/criu}
for own in /usr/sbin/criu /usr/local/sbin/criu; do
	case $("$own" --version 2>/dev/null | sed -n 's/^Version: //p') in
	[4-9].*) echo "$own"; exit 0 ;;
	esac
done
mkdir -p "$dir" && dir=$(realpath "$dir") || exit 1
exec 9>"$dir/lock" && flock 9 # one at a time
# shellcheck source=tests/lib/suite.sh
. tests/lib/suite.sh
fetch_criu() {
	local packages root=$dir/apt/trixie/root
	open_suite trixie || return 1
	# All that it needs, as if nothing were installed.
	packages=$(apt_in trixie apt-get install -s --no-install-recommends criu | awk '/^Inst/ { print $2 }')
	[ -n "$packages" ] || return 1
	# shellcheck disable=SC2086
	unpack trixie $packages || return 1
	rm -rf "$dir/root"
	mv "$root" "$dir/root"
	rm -rf "$dir/apt"
	cat >"$dir/criu" <<-END
		#!/bin/sh
		exec $dir/root/usr/lib64/ld-linux-x86-64.so.2 \\
			--library-path $dir/root/usr/lib/x86_64-linux-gnu:$dir/root/lib/x86_64-linux-gnu \\
			$dir/root/usr/sbin/criu "\$@"
	END
	chmod 755 "$dir/criu"
	"$dir/criu" --version
}
if [ ! -x "$dir/criu" ] && ! fetch_criu >"$dir/log" 2>&1; then
	tail -n 5 "$dir/log" >&2
	echo "criu.sh: no criu of version 4 can be had" >&2
	exit 1
fi
echo "$dir/criu"
