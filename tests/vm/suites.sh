# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# The Debian suites whose kernels are booted, oldest first, and what each must do: `refuses`
# (5.10: too old, and says so) or `measures` (6.1, 6.12, the newest there is).
# IOCOM_VM_SUITES="bullseye trixie" boots these only.
# shellcheck disable=SC2034
read -ra suites <<<"${IOCOM_VM_SUITES:-bullseye bookworm trixie sid}"
# shellcheck disable=SC2034
declare -A expected=([bullseye]=refuses [bookworm]=measures [trixie]=measures [sid]=measures)
# Jobs are not tested on the slowest ones; two kernels with pure cgroup v2 are left.
# shellcheck disable=SC2034
declare -A jobs_in=([bullseye]=no [bookworm]=yes [trixie]=yes [sid]=no)
