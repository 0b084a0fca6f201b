#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Checks in what was really built that the programs are hardened as the Makefile asks: each is
# position independent and fully bound at its start, nothing in it is writable and executable, and
# our own code has its checks: stack protector, fortified calls, probed stacks, and marks for CET
# or BTI. The program as a whole is marked only if the C library's start files are; where they are
# not, that is said, and the mark of our objects counts.
# Usage: check-hardening.sh [BUILD]
set -euo pipefail
build=${1:-build}
fail=0
export LC_ALL=C

miss() { # FILE WHAT
	echo "check-hardening: $1 $2" >&2
	fail=1
}

# The flags of a compiler that this machine may not have: a compile tells, as in the Makefile.
takes() { # FLAG
	echo 'int main(void) { return 0; }' | ${CC:-gcc} -O2 -Werror "$1" -x c - -S -o /dev/null 2>/dev/null
}

# Sanitizers replace the functions that would be fortified, and link what they like.
sanitized=
! grep -qa __asan_init "$build/iocomd" || sanitized=yes
! grep -qa __tsan_init "$build/iocomd" || sanitized=yes

check_program() { # FILE
	local header dynamic
	header=$(readelf -lW "$1")
	dynamic=$(readelf -dW "$1")
	grep -q 'FLAGS_1.*PIE' <<<"$dynamic" || miss "$1" "is not position independent (-pie)"
	grep -q 'FLAGS_1.*NOW' <<<"$dynamic" || miss "$1" "binds functions when they are called (-z now)"
	grep -q GNU_RELRO <<<"$header" || miss "$1" "has no RELRO segment (-z relro)"
	grep -q 'GNU_STACK.* RW  ' <<<"$header" || miss "$1" "has an executable stack (-z noexecstack)"
	! grep -qE ' LOAD .* RWE ' <<<"$header" || miss "$1" "has memory that is writable and executable"
	! grep -q TEXTREL <<<"$dynamic" || miss "$1" "has code that the loader changes (TEXTREL)"
	! grep -qE 'R(UN)?PATH' <<<"$dynamic" || miss "$1" "looks for libraries at a path of its own"
}

programs=()
for name in iocomd iocom-net iocom-shim iocom-init iocom-hold iocom-tasks iocom iocom-sim; do
	[ ! -x "$build/$name" ] || programs+=("$build/$name")
done
[ ${#programs[@]} -gt 2 ] || miss "$build" "has no programs: make all"
for program in "${programs[@]}"; do
	check_program "$program"
done

# Our own code, whatever is linked to it: the archives and main.o of each program.
for archive in "$build"/lib*.a; do
	case ${archive##*/} in librules.a | libgossip.a | libtest.a) continue ;; esac # pure; no part of a program
	used=$(nm -u "$archive" 2>/dev/null)
	grep -q ' __stack_chk_fail' <<<"$used" || miss "$archive" "has no stack protector"
	[ -n "$sanitized" ] || grep -qE ' __(memcpy|strcpy|snprintf|fprintf)_chk' <<<"$used" ||
		miss "$archive" "has no fortified call (-D_FORTIFY_SOURCE)"
done

mark='' flag=''
case $(uname -m) in
x86_64) mark='IBT, SHSTK' flag=-fcf-protection=full ;;
aarch64) mark='BTI, PAC' flag=-mbranch-protection=standard ;;
esac
if [ -n "$mark" ] && takes "$flag"; then
	objects=0 unmarked=
	while read -r object; do
		source=${object#"$build/obj/"} # one of a source that is gone says nothing
		[ -e "${source%.o}.c" ] || continue
		objects=$((objects + 1))
		grep -q "$mark" < <(readelf -nW "$object" 2>/dev/null) || unmarked="$unmarked $object"
	done < <(find "$build"/obj/{agent,balancer,user,sim} -name '*.o')
	if [ "$objects" -eq 0 ] || [ -n "$unmarked" ]; then
		miss "$build/obj" "has objects without $mark ($flag):$(echo "$unmarked" | cut -c 1-300)"
	fi
	plain=$(mktemp)
	trap 'rm -f "$plain"' EXIT
	echo 'int main(void) { return 0; }' | ${CC:-gcc} -O2 "$flag" -fPIE -pie -x c - -o "$plain"
	if grep -q "$mark" < <(readelf -nW "$plain"); then
		for program in "$build"/iocomd "$build"/iocom-net; do # the others link archives of others
			[ ! -x "$program" ] || grep -q "$mark" < <(readelf -nW "$program") ||
				miss "$program" "is not marked $mark, though the C library is"
		done
	elif [ "$fail" -eq 0 ]; then
		echo "check-hardening: the C library's start files have no mark $mark: our objects have, the programs cannot"
	fi
fi

# A function with a stack of more than a page touches each page.
# shellcheck disable=SC2016
if [ "$(uname -m)" = x86_64 ] && takes -fstack-clash-protection &&
	! grep -qE 'or[ql] +\$0x0,\(%rsp\)' < <(objdump -d --no-show-raw-insn "$build/iocomd"); then
	miss "$build/iocomd" "has no probes of large stacks (-fstack-clash-protection)"
fi

[ "$fail" -ne 0 ] || echo "check-hardening: ${programs[*]##*/} are hardened"
exit "$fail"
