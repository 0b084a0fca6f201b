#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# How much of our code runs as root: lines of C by program and room, and the libraries of others
# that each program loads or has linked into it. What is in a program comes from the program: its
# debug information names each source file that was linked (-g). Lines of .c files count that are
# neither blank nor comments, whether they are reached or not; headers do not.
# Usage: root-lines.sh [BUILD...]: builds of any revisions, each in its own tree.
set -euo pipefail
export LC_ALL=C

count_lines() { # FILE...: prints "LINES FILE" for each
	awk '
	function ends() { if (name != "") print lines, name; lines = 0; inside = 0 }
	FNR == 1 { ends(); name = FILENAME }
	{
		code = 0
		quote = ""
		for (i = 1; i <= length($0); i++) {
			c = substr($0, i, 1)
			if (inside) {
				if (substr($0, i, 2) == "*/") { inside = 0; i++ }
			} else if (quote != "") {
				if (c == "\\") i++
				else if (c == quote) quote = ""
			} else if (substr($0, i, 2) == "/*") {
				inside = 1
				i++
			} else if (substr($0, i, 2) == "//") {
				break
			} else if (c !~ /[ \t\r]/) {
				code = 1
				if (c == "\"" || c == "\047") quote = c
			}
		}
		lines += code
	}
	END { ends() }' "$@"
}

sources_of() { # PROGRAM TREE: its own source files, from the top of the tree
	readelf --debug-dump=info --dwarf-depth=1 "$1" 2>/dev/null |
		sed -n 's/.*DW_AT_name *: *\((indirect[^)]*): \)\{0,1\}//p' | sed 's|^\./||; s/ *$//' |
		grep '\.c$' | sort -u | while read -r file; do
		[[ $file = /* || ! -e $2/$file ]] || echo "$file"
	done || true
}

# What others wrote: shared libraries as the program names them, and what was linked into it from
# an archive, by a name that this library alone defines.
libraries_of() { # PROGRAM
	local defined library
	readelf -dW "$1" | sed -n '/\[libc\.so/d; s/.*(NEEDED).*\[\(lib\)\{0,1\}\([^]]*\)\.so[^]]*\]/\2/p'
	defined=$(nm --defined-only "$1" 2>/dev/null | awk '$2 == "T" || $2 == "t" { print $3 }')
	for library in nng=nng_init microhttpd=MHD_start_daemon msgpackc=msgpack_unpacker_init \
		bpf=bpf_object__open elf=elf_begin z=inflate jansson=json_loadb munge=munge_decode \
		sodium=sodium_init inih=ini_parse_stream csv=csv_parse ncursesw=initscr \
		seccomp=seccomp_init sqlite3=sqlite3_open_v2; do
		! grep -qx "${library#*=}" <<<"$defined" || echo "${library%%=*}(linked in)"
	done
}

tree_of() { # BUILD: the tree that it is in
	local at
	at=$(realpath "$1")
	while [ "$at" != / ] && [ ! -d "$at/agent/shim" ]; do
		at=$(dirname "$at")
	done
	[ "$at" != / ] || { echo "root-lines: $1 is in no tree of iocom" >&2; exit 1; }
	echo "$at"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

table() { # BUILD
	local build=$1 tree program found=() bpf
	tree=$(tree_of "$build")
	rm -f "$work"/*
	for program in iocomd iocom-shim iocom-relay iocom-net iocom; do
		[ -x "$build/$program" ] || continue
		sources_of "$build/$program" "$tree" >"$work/$program"
		[ -s "$work/$program" ] ||
			{ echo "root-lines: $build/$program has no debug information (-g)" >&2; exit 1; }
		found+=("$program")
	done
	[ ${#found[@]} -gt 0 ] || { echo "root-lines: no programs in $build: make all" >&2; exit 1; }
	(cd "$tree" && sort -u "${found[@]/#/$work/}" | tr '\n' '\0' |
		xargs -0 bash -c "$(declare -f count_lines)"'; count_lines "$@"' count) >"$work/lines"
	echo "$build ($(git -C "$tree" describe --always --dirty 2>/dev/null || echo no revision)): lines of C"
	# A room is a folder, two levels deep; balancer/settings is one, agent itself another.
	awk -v programs="${found[*]}" -v work="$work" '
	function room(file,  part, n) {
		n = split(file, part, "/")
		return n > 2 ? part[1] "/" part[2] : part[1]
	}
	function row(name, numbers,  i) {
		printf "%-20s", name
		for (i = 1; i <= n; i++)
			printf "%12s", (name, i) in numbers ? numbers[name, i] : "-"
		printf "%12s\n", (name, 0) in numbers ? numbers[name, 0] : "-"
	}
	{ lines[$2] = $1 }
	END {
		n = split(programs, program, " ")
		for (i = 1; i <= n; i++) {
			root = program[i] == "iocomd" || program[i] == "iocom-shim"
			while ((getline file < (work "/" program[i])) > 0) {
				r = room(file)
				rooms[r] = 1
				sum[r, i] += lines[file]
				sum["in all", i] += lines[file]
				if (root && !seen[file]++) {
					sum[r, 0] += lines[file]
					sum["in all", 0] += lines[file]
				}
			}
		}
		printf "%-20s", "room"
		for (i = 1; i <= n; i++)
			printf "%12s", program[i]
		printf "%12s\n%-20s", "as root", "runs as"
		for (i = 1; i <= n; i++)
			printf "%12s", program[i] ~ /^iocom(d|-shim)$/ ? "root" : \
				program[i] == "iocom" ? "its user" : "own user"
		printf "%12s\n", "each once"
		for (r in rooms)
			print r | "sort >" work "/rooms"
		close("sort >" work "/rooms")
		while ((getline r < (work "/rooms")) > 0)
			row(r, sum)
		row("in all", sum)
	}' "$work/lines"
	bpf=$(cd "$tree" && find bpf -name '*.bpf.[ch]' | sort | tr '\n' '\0' |
		xargs -0 bash -c "$(declare -f count_lines)"'; count_lines "$@"' count |
		awk '{ n += $1 } END { print n + 0 }')
	echo "In the kernel, checked by its verifier: $bpf lines of eBPF (loaded by iocomd)."
	for program in "${found[@]}"; do
		libraries_of "$build/$program" | sort -u | paste -sd ' ' | sed "s/^/$program: libraries /"
	done
}

[ $# -gt 0 ] || set -- build
for one in "$@"; do
	[ "$one" = "$1" ] || echo
	table "$one"
done
