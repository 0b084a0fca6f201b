# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# shellcheck shell=bash disable=SC2154
# Packages of other Debian suites, unpacked and not installed. They come from the mirror of this
# machine's own package sources, with its keys; lists and packages stay in $dir/apt/SUITE. Sourced;
# `dir` is the caller's.

# Prints the machine's own Debian mirror: the first archive that is not the security team's.
mirror() {
	local sites
	# shellcheck disable=SC2016
	sites=$(apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' 2>&1)
	awk '$1 == "Debian" { print $2; exit }' <<<"$sites"
}

# Runs apt with its own sources, lists and archives, so that the machine's do not change. It knows of
# no installed package: one that is newer here than in the suite (a security update) would otherwise
# be the version that it wants, and no source has it.
apt_in() { # SUITE COMMAND...
	local own=$dir/apt/$1 tool=$2
	shift 2
	"$tool" -q -o Dir::Etc::sourcelist="$own/sources.list" -o Dir::Etc::sourceparts=- \
		-o Dir::Etc::preferencesparts=/dev/null -o Dir::State::lists="$own/lists" \
		-o Dir::State::status="$own/status" \
		-o Dir::Cache="$own/cache" -o APT::Get::List-Cleanup=false \
		-o APT::Sandbox::User=root -o APT::Update::Post-Invoke= \
		-o APT::Update::Post-Invoke-Success= "$@"
}

# Gets a suite's list of packages into a folder of its own.
open_suite() { # SUITE
	local own=$dir/apt/$1 archive
	rm -rf "$own"
	mkdir -p "$own/lists/partial" "$own/cache/archives/partial" "$own/deb"
	: >"$own/status"
	archive=$(mirror)
	[ -n "$archive" ] || { echo "this machine's package sources name no Debian mirror"; return 1; }
	printf 'deb [signed-by=%s] %s %s main\n' /usr/share/keyrings/debian-archive-keyring.gpg \
		"$archive" "$1" >"$own/sources.list"
	apt_in "$1" apt-get update
}

# Unpacks packages of an opened suite into its folder `root`.
unpack() { # SUITE PACKAGE...
	local own=$dir/apt/$1 suite=$1 package
	shift
	(cd "$own/deb" && apt_in "$suite" apt-get download "$@") || return 1
	for package in "$own"/deb/*.deb; do
		dpkg-deb -x "$package" "$own/root" || return 1
	done
}
