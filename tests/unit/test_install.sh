#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# `make install` below DESTDIR: PAM's service file comes, an administrator's own stays, and
# `make uninstall` takes away what is ours only.
set -uo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh disable=SC1091
. "$here/tests/lib/tap.sh"
build=${IOCOM_BUILD:-$here/build}
unset MAKEFLAGS MFLAGS MAKELEVEL

dir=$(mktemp -d /tmp/iocom-install-XXXXXX)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
service=$dir/root/etc/pam.d/iocom
kept=$dir/root/usr/share/iocom/iocom.pam
sample=$here/agent/iocom.pam
# -o all: the programs are built already, and a test changes nothing in build/.
run_make() { make -s -C "$here" BUILD="$build" PREFIX=/usr DESTDIR="$dir/root" -o all "$1" 2>&1; }
pam() { sh "$here/agent/install-pam.sh" "$1" "$sample" "$service" "$kept" 2>&1; } # as make does it
same() { cmp -s "$1" "$2" && echo same; }

said=$(run_make install)
tap_is "make install" "$?" 0
tap_is "PAM's service file" "$(same "$service" "$sample") $(stat -c %a "$service")" "same 644"
tap_like "it is said that PAM is on" "$said" "$service: the jobs of iocom use PAM"
tap_is "the sample for later" "$(same "$kept" "$sample")" same
for program in sbin/iocomd bin/iocom libexec/iocom/iocom-shim libexec/iocom/iocom-init libexec/iocom/iocom-hold libexec/iocom/iocom-tasks; do
	tap_is "$program" "$(test -x "$dir/root/usr/$program" && echo there)" there
done
tap_is "the library that criu loads" "$(same "$dir/root/usr/libexec/iocom/iocom-tty.so" "$build/iocom-tty.so")" same
tap_is "bash's completion" "$(same "$dir/root/usr/share/bash-completion/completions/iocom" "$here/balancer/iocom.bash-completion")" same
tap_is "nothing outside of DESTDIR is named" "$(grep -c "$dir" "$dir/root/etc/systemd/system/iocomd.service")" 0
user=$dir/root/etc/sysusers.d/iocom.conf
profile=$dir/root/etc/apparmor.d/iocom-net
tap_like "a user of its own for iocom-net" "$(cat "$user")" "^u iocom-net "
tap_like "AppArmor's profile names the program" "$(cat "$profile")" "^profile iocom-net /usr/libexec/iocom/iocom-net "
tap_is "the prefix is filled in" "$(grep -l @PREFIX@ "$user" "$profile" "$dir/root/etc/systemd/system/iocomd.service")" ""
if command -v systemd-sysusers >/dev/null; then
	mkdir -p "$dir/machine/etc"
	systemd-sysusers --root="$dir/machine" "$user" >"$dir/said" 2>&1 || cat "$dir/said"
	tap_like "systemd makes the user: no password, no shell" "$(cat "$dir/machine/etc/passwd")" \
		"^iocom-net:[x!*]*:[1-9][0-9]*:[1-9][0-9]*:[^:]*:/:/usr/sbin/nologin"
else
	tap_skip "systemd makes the user" "needs systemd-sysusers"
fi
# The parser needs the abstractions that come with it, and no kernel.
if command -v apparmor_parser >/dev/null && [ -e /etc/apparmor.d/abstractions/nameservice ]; then
	said=$(apparmor_parser --skip-kernel-load --skip-cache "$profile" 2>&1)
	tap_is "apparmor_parser reads the profile" "$?" 0
	[ -z "$said" ] || echo "# ${said//$'\n'/$'\n# '}" # without the kernel's part it says so
	sed 's/^  capability sys_chroot,/  capability sys_change_root,/' "$profile" >"$dir/wrong"
	apparmor_parser --skip-kernel-load --skip-cache "$dir/wrong" >/dev/null 2>&1
	tap_isnt "and not a wrong one" "$?" 0
else
	tap_skip "apparmor_parser reads the profile" "needs the package apparmor"
fi

# An upgrade: the file is as an older version installed it.
echo "# an older version's" | tee "$service" >"$kept"
pam install >/dev/null
tap_is "an unchanged file is replaced" "$(same "$service" "$sample") $(same "$kept" "$sample")" "same same"

echo "# my own" >"$service"
said=$(pam install)
tap_is "a changed file: install succeeds" "$?" 0
tap_is "and the file stays" "$(cat "$service")" "# my own"
tap_like "and it is said" "$said" "$service was changed on this machine and stays"
said=$(pam uninstall)
tap_is "uninstall leaves it, too" "$? $(cat "$service")" "0 # my own"
tap_like "and says so" "$said" "$service was changed on this machine and stays"
tap_is "the sample is gone" "$(test -e "$kept" || echo gone)" gone

rm "$service"
ln -s /nowhere "$service"
pam install >/dev/null
tap_is "a link is the administrator's" "$(readlink "$service")" /nowhere
rm "$service"
pam install >/dev/null
tap_is "a removed file comes again" "$(same "$service" "$sample")" same
run_make uninstall >/dev/null
tap_is "uninstall removes an unchanged file" "$(test -e "$service" || echo gone)" gone
tap_is "only the configuration is left" "$(cd "$dir/root" && find . ! -type d)" ./etc/iocom/iocom.conf
tap_done
