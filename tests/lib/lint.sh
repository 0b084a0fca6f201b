#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Runs cppcheck over all C sources except the eBPF programs, which are for another machine.
set -euo pipefail
git ls-files '*.c' | grep -vE '^(bpf|vmlinux)/' |
	xargs cppcheck --quiet --std=c11 --enable=warning,performance,portability \
		--inline-suppr --error-exitcode=1 --suppress=missingIncludeSystem \
		--suppress=checkersReport -D_GNU_SOURCE -DIOCOM_VERSION='"x"' \
		'-Djson_array_foreach(a,i,v)=for(i=0;(v=json_array_get(a,i));i++)' \
		'-Djson_object_foreach(o,k,v)=for(k="";(v=json_object_get(o,k));)' \
		-I. -Iinclude -j"$(nproc)"
echo "lint: cppcheck has nothing to say"
