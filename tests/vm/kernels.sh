#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Debian's cloud kernels for the virtual machines: `kernels.sh [DIR]` puts each suite's newest into
# DIR/SUITE (vmlinuz, modules, version).  Mirror and keys are those of this machine's own package
# sources; lists and packages stay in DIR, nothing is installed.  What is there is not fetched
# again: `make clean` for newer ones.  Ends with 1 when one cannot be had.  Needs no root.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
dir=${1:-build/vm}
mkdir -p "$dir" && dir=$(realpath "$dir") || exit 1
# shellcheck source=suites.sh
. tests/vm/suites.sh

# The machine's own Debian mirror: the first archive that is not the security team's.
mirror() {
	local sites
	# shellcheck disable=SC2016
	sites=$(apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' 2>&1)
	awk '$1 == "Debian" { print $2; exit }' <<<"$sites"
}

# apt with sources, lists and archives of its own; the machine's stay as they are.
apt_in() { # SUITE COMMAND...
	local own=$dir/apt/$1 tool=$2
	shift 2
	"$tool" -q -o Dir::Etc::sourcelist="$own/sources.list" -o Dir::Etc::sourceparts=- \
		-o Dir::Etc::preferencesparts=/dev/null -o Dir::State::lists="$own/lists" \
		-o Dir::Cache="$own/cache" -o APT::Get::List-Cleanup=false \
		-o APT::Sandbox::User=root -o APT::Update::Post-Invoke= \
		-o APT::Update::Post-Invoke-Success= "$@"
}

# The packages that hold the kernel: the one of the name, then what it depends on of its kind
# (image alone, or image -> binary + modules).
kernel_packages() { # SUITE PACKAGE
	local next
	for next in $(apt_in "$1" apt-cache show --no-all-versions "$2" 2>/dev/null |
		sed -n 's/^Depends: //p' | tr ',' '\n' |
		sed -nE 's/^ *(linux-(image|binary|modules)-[^ ]+).*/\1/p'); do
		echo "$next"
		kernel_packages "$1" "$next"
	done
}

fetch() { # SUITE
	local suite=$1 own=$dir/apt/$1
	local archive packages root tree version package
	rm -rf "$own"
	mkdir -p "$own/lists/partial" "$own/cache/archives/partial" "$own/deb"
	archive=$(mirror)
	[ -n "$archive" ] || { echo "this machine's package sources name no Debian mirror"; return 1; }
	printf 'deb [signed-by=%s] %s %s main\n' /usr/share/keyrings/debian-archive-keyring.gpg \
		"$archive" "$suite" >"$own/sources.list"
	apt_in "$suite" apt-get update || return 1
	packages=$(kernel_packages "$suite" "linux-image-cloud-$(dpkg --print-architecture)")
	[ -n "$packages" ] || { echo "suite $suite has no cloud kernel"; return 1; }
	# shellcheck disable=SC2086
	(cd "$own/deb" && apt_in "$suite" apt-get download $packages) || return 1
	root=$own/root
	rm -rf "$root" "$dir/$suite.new"
	for package in "$own"/deb/*.deb; do
		dpkg-deb -x "$package" "$root" || return 1
	done
	# /boot/vmlinuz-VERSION, in newer suites /usr/lib/modules/VERSION/vmlinuz.
	tree=$(find "$root" -type d -regex '.*/lib/modules/[^/]*/kernel' -printf '%h\n')
	version=${tree##*/}
	mkdir -p "$dir/$suite.new/modules/lib/modules"
	cp "$(find "$root" -type f -name 'vmlinuz*')" "$dir/$suite.new/vmlinuz" || return 1
	mv "$tree" "$dir/$suite.new/modules/lib/modules/" || return 1
	depmod -b "$dir/$suite.new/modules" "$version" || return 1
	echo "$version" >"$dir/$suite.new/version"
	rm -rf "$own" "${dir:?}/$suite"
	mv "$dir/$suite.new" "$dir/$suite"
}

missing=0
for suite in "${suites[@]}"; do
	if [ ! -e "$dir/$suite/version" ] && ! fetch "$suite" >"$dir/$suite.log" 2>&1; then
		tail -n 20 "$dir/$suite.log"
		echo "kernels: the kernel of suite $suite cannot be had"
		missing=1
		continue
	fi
	echo "$suite: $(cat "$dir/$suite/version")"
done
exit $missing
