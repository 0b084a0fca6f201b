#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# The five mini-applications (tests/apps) with each MPI of this machine: the same result for any
# number of ranks, each message as it was sent, and counts that follow from the options.
set -uo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh disable=SC1091
. "$here/tests/lib/tap.sh"
build=${IOCOM_BUILD:-$here/build}/tests/apps
dir=$(mktemp -d /tmp/iocom-apps-XXXXXX)
trap 'rm -rf "$dir"' EXIT
# Ranks of this machine only, whoever runs them, on however few processors.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TMPDIR=$dir IOCOM_TESTBED_DISK=
start() { # MPI RANKS APP OPTIONS...
	local mpi=$1 ranks=$2 app=$3
	shift 3
	case $mpi in
	openmpi) timeout -k 5 60 mpirun.openmpi --oversubscribe --bind-to none -n "$ranks" "$build/openmpi/$app" "$@" ;;
	mpich) timeout -k 5 60 mpiexec.mpich -n "$ranks" "$build/mpich/$app" "$@" ;;
	esac 2>"$dir/err"
}
mpis=()
command -v mpirun.openmpi >/dev/null && [ -x "$build/openmpi/vortex" ] && mpis+=(openmpi)
command -v mpiexec.mpich >/dev/null && [ -x "$build/mpich/vortex" ] && mpis+=(mpich)
[ ${#mpis[@]} -gt 0 ] || tap_skip_all "no MPI is installed (make deps)"

# What the result depends on: the seed and the phases; for the renderer its tiles, too.
declare -A result=([render]=f4c9b454f5601dc6 [molecular]=f55322b4aa7bebd5 [semiconductor]=2afb1a93d6ae7c61
	[reaction]=cb4ebffdf6bca5b4 [vortex]=6d9dcd9f7665e20a)
for mpi in "${mpis[@]}"; do
	for app in render molecular semiconductor reaction vortex; do
		got='' expected=''
		for ranks in 1 2 4 7; do
			got+="$(start "$mpi" "$ranks" "$app" --compute 0.2 --bytes 3001 --messages 2 --phases 6 --verify);"
			expected+="$app: ranks $ranks phases 6 result ${result[$app]} verified;"
		done
		tap_is "$mpi: $app has one result for 1, 2, 4 and 7 ranks" "$got" "$expected"
	done
done

# counted MPI APP OPTIONS...: `FROM TO BYTES MESSAGES` of all pairs of four ranks, by rank.
counted() {
	rm -f "$dir/count".*
	start "$1" 4 "$2" "${@:3}" --compute 0 --count "$dir/count" >/dev/null
	cat "$dir/count".? | grep -v times | sort -n -k1,1 -k2,2 | tr '\n' ';'
}
mpi=${mpis[0]}
# Two sums over a tree of four: of the result (8 bytes) and of the end.  Up: 1 to 0, 3 to 2, 2 to 0.
tap_is "vortex: all to all, 3 phases of 2 messages of 5000 bytes" "$(counted "$mpi" vortex --phases 3 --messages 2 --bytes 5000)" \
	"0 1 30016 8;0 2 30016 8;0 3 30000 6;1 0 30016 8;1 2 30000 6;1 3 30000 6;2 0 30016 8;2 1 30000 6;2 3 30016 8;3 0 30000 6;3 1 30000 6;3 2 30016 8;"
tap_is "molecular: a ring, and a sum in each step" "$(counted "$mpi" molecular --phases 3 --bytes 1000)" \
	"0 1 3032 7;0 2 32 4;0 3 3000 3;1 0 3032 7;1 2 3000 3;2 0 32 4;2 1 3000 3;2 3 3032 7;3 0 3000 3;3 2 3032 7;"
tap_is "reaction: neighbours of a grid of 2 x 2" "$(counted "$mpi" reaction --phases 3 --bytes 10000)" \
	"0 1 30016 5;0 2 30016 5;1 0 30016 5;1 3 30000 3;2 0 30016 5;2 3 30016 5;3 1 30000 3;3 2 30016 5;"
tap_is "reaction: a message is never less than its border" "$(counted "$mpi" reaction --phases 1 --bytes 1)" \
	"0 1 4112 3;0 2 272 3;1 0 4112 3;1 3 256 1;2 0 272 3;2 3 4112 3;3 1 256 1;3 2 4112 3;"
tap_is "semiconductor: one big message each in phases 4, 8 and 9" "$(counted "$mpi" semiconductor --phases 9 --bytes 100000)" \
	"0 1 101544 5;0 2 101544 5;0 3 100000 1;1 0 101544 5;1 2 100000 1;1 3 100000 1;2 0 101544 5;2 1 100000 1;2 3 101544 5;3 0 100000 1;3 1 100000 1;3 2 101544 5;"
# Which slave gets how many tiles is chance; in all they are 16.
all=$(counted "$mpi" render --phases 2 --messages 1 --bytes 7000 | tr ';' '\n' |
	awk '$1 == 0 { out += $3; n += $4 } $2 == 0 { in_ += $3 } END { print out, n, in_ }')
# 16 tiles, an end of each of two pictures for three slaves, and the sums.
tap_is "render: 16 tiles go out" "$all" "$((16 * 7000 + 6 * 24 + 2 * 16)) $((16 + 6 + 4)) $((16 * 7000 + 6 * 24 + 2 * 16))"

start "$mpi" 2 vortex --phases 4 --compute 0 --disk-bytes 100000 --disk-dir "$dir" --count "$dir/disk" >/dev/null
tap_calc "--disk-bytes takes time at the disk" "$(awk '/times/ { print $4 }' "$dir/disk.0") > 0"
tap_is "and leaves nothing" "$(find "$dir" -size +50k -type f)" ""
start "$mpi" 2 vortex --disk-bytes 1 --disk-dir "$dir/none" >/dev/null
tap_isnt "a disk that is not there: it fails" $? 0
tap_like "with a sentence" "$(cat "$dir/err")" "vortex: rank [01]: cannot make a file in $dir/none: No such file"
for bad in "--phases 0" "--wait long" "--bytes x" "more"; do
	# shellcheck disable=SC2086
	start "$mpi" 1 vortex $bad >/dev/null
	tap_is "$bad is refused" $? 2
done
start "$mpi" 1 vortex --help >"$dir/help"
tap_like "the help says how messages go" "$(cat "$dir/help")" "every rank sends messages to all others"
tap_done
