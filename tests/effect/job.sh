#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# One job of bench-effect: a real application that reads cold inputs from its node's disk and ends
# with one line that says what it found.  The benchmark compares that line with the known result.
#
#	job.sh WORK PROGRAM DATA SCRATCH
#
# WORK is the test tool `work`, DATA the directory of the inputs, SCRATCH a directory of this job's
# own on the same disk, which is removed at the end.  The exit status is that of the application.
set -eu
work=$1 program=$2 data=$3 scratch=$4
export LC_ALL=C
umask 022
mkdir -p "$scratch"
trap 'rm -rf "$scratch"' EXIT
# What an earlier job read must not be in memory still.
find "$data" -type f -exec "$work" cold {} +

sum() { sha256sum | cut -c1-64; }

run_grep() { grep -c "$(cat "$data/word")" "$data/text"; }
run_sort() {
	sort -S 2M -T "$scratch" -o "$scratch/sorted" "$data/text"
	sync "$scratch/sorted"
	sum <"$scratch/sorted"
}
run_sqlite_load() {
	sqlite3 -batch "$scratch/db" 'CREATE TABLE t(id INTEGER PRIMARY KEY, k INTEGER, body TEXT)' \
		'.mode csv' ".import $data/rows.csv t" 'CREATE INDEX k ON t(k)' '.mode list' \
		'SELECT count(*), sum(k) FROM t'
}
run_sqlite_scan() {
	sqlite3 -batch -readonly "$data/db" 'SELECT count(*), sum(k), sum(length(body)) FROM t WHERE k >= 0'
}
run_targz() {
	tar -C "$data" --sort=name -cf - tree | gzip -1 >"$scratch/archive.tgz"
	sync "$scratch/archive.tgz"
	tar -xOzf "$scratch/archive.tgz" | sum
}
run_gcc() {
	gcc -O1 -o "$scratch/program" "$data/program.c"
	"$scratch/program"
}
run_postgres() {
	bin=$(echo /usr/lib/postgresql/*/bin)
	as_postgres="setpriv --reuid=postgres --regid=postgres --clear-groups"
	cp -a "$data/cluster" "$scratch/cluster"
	cd "$scratch"
	$as_postgres "${bin##* }/pg_ctl" -s -w -D "$scratch/cluster" -l "$scratch/cluster/log" \
		-o "-k $scratch/cluster -c listen_addresses= -c shared_buffers=8MB -c autovacuum=off" start >&2
	psql -X -h "$scratch/cluster" -U postgres -d template1 -q -At \
		-c 'UPDATE t SET k = k + 1 WHERE id % 10 = 0' -c CHECKPOINT \
		-c "SELECT count(*) || ' ' || sum(k) || ' ' || sum(length(body)) FROM t"
	$as_postgres "${bin##* }/pg_ctl" -s -w -D "$scratch/cluster" -m fast stop >&2
	cd /
}
# fio writes blocks with checksums, reads them again and fails on a wrong one.
run_fio() {
	kib=$(cat "$data/kib")
	fio --name=job --filename="$scratch/blocks" --rw=randwrite --bs=16k --size="${kib}k" --direct=1 \
		--verify=crc32c --do_verify=1 --verify_fatal=1 --verify_state_save=0 --thread --randrepeat=1 \
		--output-format=terse --terse-version=3 --output="$scratch/report" >&2
	awk -F';' 'NR == 1 { print $6, $47, $5 }' "$scratch/report"
}
run_mmap() {
	python3 -SEc 'import mmap, sys, zlib
with open(sys.argv[1], "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as m:
    view, crc = memoryview(m), 0
    for at in range(0, len(view), 1 << 18):
        crc = zlib.crc32(view[at:at + (1 << 18)], crc)
    view.release()
print(crc)' "$data/bytes"
}
run_hog() {
	python3 -SEc 'import sys, zlib
with open(sys.argv[1], "rb") as f:
    seed = f.read()
held, crc = bytearray(seed) * int(sys.argv[2]), 0
for turn in range(6):
    held[turn::4096] = bytes(len(range(turn, len(held), 4096)))
    crc = zlib.adler32(held, crc)
print(len(held), crc)' "$data/bytes" "$(cat "$data/times")"
}
run_awk() { awk -F, '{ n++; s += $2 } END { printf "%d %.0f\n", n, s }' "$data/rows.csv"; }
run_python() {
	python3 -SEc 'import json, sys
sums = {}
with open(sys.argv[1]) as f:
    for line in f:
        row = json.loads(line)
        sums[row["k"]] = sums.get(row["k"], 0) + row["v"]
print(len(sums), sum(k * v for k, v in sums.items()))' "$data/rows.json"
}
run_openssl() {
	key=000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f
	iv=0f0e0d0c0b0a09080706050403020100
	openssl enc -aes-256-ctr -K $key -iv $iv -in "$data/bytes" -out "$scratch/secret"
	sync "$scratch/secret"
	openssl enc -d -aes-256-ctr -K $key -iv $iv -in "$scratch/secret" | sum
}
run_xz() {
	xz -1 -T1 -c "$data/text" >"$scratch/text.xz"
	sync "$scratch/text.xz"
	xz -dc "$scratch/text.xz" | sum
}
run_zstd() {
	zstd -q -3 -T1 -c "$data/text" >"$scratch/text.zst"
	sync "$scratch/text.zst"
	zstd -q -dc "$scratch/text.zst" | sum
}
run_perl() {
	perl -ne '$n{$_}++ for split; END { my $m = 0; for (values %n) { $m = $_ if $_ > $m }
		print scalar(keys %n), " $m\n" }' "$data/text"
}
run_copy() {
	dd if="$data/bytes" of="$scratch/copy" bs=1M conv=fsync status=none
	"$work" cold "$scratch/copy"
	sum <"$scratch/copy"
}
run_checksum() { (cd "$data/tree" && find . -type f -print0 | sort -z | xargs -0 sha256sum) | sum; }

case $program in
grep | sort | sqlite-load | sqlite-scan | targz | gcc | postgres | fio | mmap | hog | awk | python | \
	openssl | xz | zstd | perl | copy | checksum) ;;
*)
	echo "job.sh: no program '$program'" >&2
	exit 2
	;;
esac
"run_$(echo "$program" | tr - _)"
