#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Installs or removes what the system knows of iocom-net, for `make install` and `make uninstall`:
# `install-net.sh install|uninstall ROOT PREFIX SYSUSERS APPARMOR`: its user (sysusers.d) and its
# AppArmor profile, in these directories below ROOT. If ROOT is empty this is the machine itself:
# then the user is made and the profile loaded, where systemd and the kernel have these. In a
# package the same is for its scripts to do.
set -eu
what=$1 root=$2 prefix=$3
here=$(dirname "$0")
user=$4/iocom.conf profile=$5/iocom-net

apparmor() { # FLAG: -r loads or replaces, -R removes
	[ -z "$root" ] && [ "$(id -u)" -eq 0 ] || return 0
	[ "$(cat /sys/module/apparmor/parameters/enabled 2>/dev/null)" = Y ] || return 0
	command -v apparmor_parser >/dev/null || return 0
	if apparmor_parser "$1" "$profile"; then
		return 0
	fi
	echo "$profile: apparmor_parser $1 failed; iocom-net runs as before" >&2
}

if [ "$what" = install ]; then
	install -d "$root$4" "$root$5"
	install -m 644 "$here/iocom-net.sysusers" "$root$user"
	sed "s|@PREFIX@|$prefix|g" "$here/iocom-net.apparmor" >"$root$profile"
	chmod 644 "$root$profile"
	if [ -z "$root" ] && [ "$(id -u)" -eq 0 ]; then
		if command -v systemd-sysusers >/dev/null; then
			systemd-sysusers "$user"
		elif ! id iocom-net >/dev/null 2>&1; then
			echo "make the user iocom-net: useradd --system --no-create-home -s /usr/sbin/nologin iocom-net"
		fi
	fi
	apparmor -r
else
	# The user stays, as users do: its number must not be given to another one.
	[ ! -e "$root$profile" ] || apparmor -R
	rm -f "$root$user" "$root$profile"
fi
