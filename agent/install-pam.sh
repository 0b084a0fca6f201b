#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Installs or removes the PAM service file for `make install` and `make uninstall`:
# `install-pam.sh install|uninstall SAMPLE SERVICE KEPT`. KEPT is the sample as it was installed
# last. A SERVICE that differs from both samples is the administrator's, and stays.
set -eu
what=$1 sample=$2 service=$3 kept=$4

ours() {
	cmp -s "$service" "$sample" || cmp -s "$service" "$kept"
}

if [ "$what" = install ]; then
	install -d "$(dirname "$service")" "$(dirname "$kept")"
	if [ -L "$service" ] || { [ -e "$service" ] && ! ours; }; then
		echo "$service was changed on this machine and stays; the sample is $kept"
	else
		install -m 644 "$sample" "$service"
		echo "$service: the jobs of iocom use PAM (setting pam = auto)"
	fi
	install -m 644 "$sample" "$kept"
else
	if [ -L "$service" ] || { [ -e "$service" ] && ! ours; }; then
		echo "$service was changed on this machine and stays"
	else
		rm -f "$service"
	fi
	rm -f "$kept"
fi
