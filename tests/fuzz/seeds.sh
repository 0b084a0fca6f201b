#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Makes first inputs of each target from the samples of the tests. Usage: seeds.sh DIRECTORY
set -euo pipefail
to=$1
data=tests/sim/data
put() { # TARGET NAME: standard input becomes a seed
	mkdir -p "$to/$1"
	cat >"$to/$1/$2"
}

put columns8 sample <$data/columns8.txt
tail -n +2 $data/csd.csv | put csd sample
put swf sample <$data/log.swf
put darshan sample <$data/darshan.csv
tail -n +2 $data/block.csv | put block sample
tail -c +2 $data/recording.jsonl | put recording sample # after the first brace
{
	echo '"record":"header","version":1}'
	echo '{"record":"node","time_ms":0,"node":0,"name":"a"}'
	echo '{"record":"decision","time_ms":0,"nodes":[0],"request":{"corrections":{"a":2}},"plan":{}}'
} | put recording corrected
for sample in "$data"/*.*; do
	name=$(basename "$sample")
	put recognise "$name" <"$sample"
	put gzip "$name" <"$sample"
	gzip -9n <"$sample" | put gzip "$name.gz"
done
# One seed per word: the fuzzer combines them.
put spec all <<<'fc,io_per_ms=0.5,jobs=9,seed=3,nodes=4,home_weights=1:2:3:4,lifetime=gamma'
printf 'com-io,share=0.3,tasks_min=2,tasks_max=4,arrivals=regular' | put spec com
printf 'plain,lifetime=pareto,lifetime_shape=1.5,lifetime_max_ms=1e6' | put spec plain
printf 'acm-apps-mix,parallel=0.6,memory_mb=8,initial_mb=1,barrier_ms=50' | put spec mix
printf '6xfc' | put cluster fc
printf '60xacm-b' | put cluster acm
printf '30xfc+2xfc:disk=20,cpu=400' | put cluster joined
printf '\x83\xa7version\x01\xa5nodes\x91\x80\xa3job\x80' | put msgpack view
printf '\x84\xa1a\xcb\x3f\xb9\x99\x99\x99\x99\x99\x9a\xa1b\xd1\x80\x00\xa1c\x92\xc3\xc0\xa1d\xd9\x01x' | put msgpack kinds
put view packed <"$to/msgpack/view"
put view corrected <<<'{"nodes":[{},{}],"job":{"cpu_ms":9,"corrections":{"n2":0.5,"n1":4},"correction":2}}'
put view empty <<<'{"version":1,"nodes":[{}],"job":{}}'
for view in tests/unit/data/view*.json; do
	[ -e "$view" ] && put view "$(basename "$view")" <"$view"
done
exit 0
