#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# What real agents learn of a class over a few runs, and what people do with it: the size of the
# input, cold and warm runs, needs that are set, light classes, documents.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/cluster.sh
cluster_up --nodes 2 --disk 80
tap_true "the nodes hear of each other" until_true 20 sees n1 2

D=$DISK/data
on n1 sh -c "mkdir $D && for n in 2 4 6 8 10; do head -c \${n}M /dev/urandom > $D/\$n; done; sync -f $D"
evict() { # the files leave the page cache
	on n1 python3 -c 'import os, sys
for name in os.scandir(sys.argv[1]):
    f = os.open(name.path, os.O_RDONLY)
    os.fsync(f)
    os.posix_fadvise(f, 0, 0, os.POSIX_FADV_DONTNEED)' "$D"
}
# Each end teaches before the next job begins.
ended() { on n1 iocom jobs --json | jq -e '.jobs == []' >/dev/null; }
job() { on n1 iocom run --policy nlb "$@" && until_true 30 ended; }
show() { on n1 iocom profile show "$@" --json | jq -r ".profiles[0]"; }
need() { # NEED FIELD CLASS [OPTION...]
	show "${@:3}" | jq ".needs.$1.$2"
}

# --- over three runs
confidence=0
for n in 2 4 6; do
	evict
	job --class sum -- sha256sum "$D/$n" >/dev/null
	tap_calc "run on $n MiB: surer than before" "$(need read_mb confidence sum) > $confidence"
	confidence=$(need read_mb confidence sum)
done
tap_is "three cold runs" "$(show sum | jq -c '[.runs, .cold_runs, .warm_runs, .warm]')" '[3,3,0,false]'
tap_calc "without an input: their mean" "$(need read_mb value sum) - 4.4 < 1 && $(need read_mb value sum) - 4.4 > -1"
tap_calc "and their spread" "$(need read_mb spread sum) > 1"
tap_is "with an input: by its size" "$(need read_mb by_input sum --input 20M)" true
tap_calc "of an input that no run had" "$(need read_mb value sum --input 20M) > 18 && $(need read_mb value sum --input 20M) < 22"
tap_calc "nothing was written" "$(need written_mb value sum) < 0.1"
out=$(on n1 iocom profile show sum --input 20M)
tap_like "for people: value, spread, confidence, source" "$out" '  read +[0-9.]+ MB +[0-9.]+ [KM]?B +[0-9]+ % (low|fair|high) +input: '
tap_like "the old form shows the same" "$(on n1 iocom profile sum)" '^The next run of sum \(user root\), from 3 runs'
tap_is "it fits 80 columns" "$(awk 'length > 80' <<<"$out")" ""
evict
job --class sum -- sha256sum "$D/8" >/dev/null
tap_like "explain says by what" "$(on n1 iocom explain last)" '^Known of its class from 3 runs .*; for 8.389 MB of input, from 3 runs\.$'

# --- the page cache
job --class sum -- sha256sum "$D/8" >/dev/null
tap_is "a run on cached files is warm" "$(show sum | jq -c '[.cold_runs, .warm_runs]')" '[4,1]'
job --class sum -- sha256sum "$D/8" >/dev/null
tap_like "the next one on them is expected to be" "$(on n1 iocom explain last)" '^Known of its class from 5 runs \(1 warm one\)'
job --class sum -- sha256sum "$D/10" >/dev/null
tap_like "on others it is not" "$(on n1 iocom explain last)" '^Known of its class from 6 runs \(4 cold ones\)'

# --- light classes
for _ in 1 2 3; do job --class small -- true; done
on n1 iocom run --class small -- true
until_true 30 ended
tap_like "a light class stays, and explain says so" "$(on n1 iocom explain last | tr -s '\n ' ' ')" \
	'It runs at home, on n1: jobs of its class are light, about .* less than 200 ms \(light_ms\) stay\.'

# --- what people set
tap_is "set" "$(on n1 iocom profile set sum --mem 300M --cpu-time 2; echo $?)" 0
tap_is "it decides" "$(on n1 iocom place --class sum --json -- sha256sum | jq -c '[.need.memory_mb, .need.requests.source]')" \
	'[{"value":300,"source":"set"},"profile"]'
tap_is "an option decides more" "$(on n1 iocom place --class sum --mem 200M --json -- sha256sum | jq -c .need.memory_mb)" \
	'{"value":200,"source":"option"}'
tap_like "shown as yours" "$(on n1 iocom profile show sum)" '^  memory +300 MB +set by you \(learned: [0-9.]+ MB\)$'
job --class sum -- sha256sum "$D/2" >/dev/null
tap_is "a run does not change it" "$(show sum | jq -c .set)" '{"memory_mb":300,"cpu_s":2}'
tap_like "a class before its first run has no numbers" \
	"$(on n1 iocom profile set unborn --mem 1G; on n1 iocom profile list; on n1 iocom profile forget unborn)" \
	'^unborn +root +0( +-){6}$'
tap_is "a class before its first run" "$(on n1 iocom profile set later --io 1G; show later | jq -c '[.runs, (.set.requests | round)]')" '[0,7813]'

# --- documents
file=$SCRATCH/profiles.json
tap_is "export" "$(on n1 iocom profile export "$file"; echo $?)" 0
tap_like "a file is not overwritten" "$(on n1 iocom profile export "$file" 2>&1)" "$file exists; --force replaces it"
tap_is "with --force it is" "$(on n1 iocom profile export --force "$file"; echo $?)" 0
tap_is "import at another node: only a check" "$(on n2 iocom profile import --dry-run "$file" >/dev/null; on n2 iocom profile --json | jq '.profiles | length')" 0
tap_is "import" "$(on n2 iocom profile import --json "$file" | jq -c '[.classes, .replaced]')" '[3,0]'
tap_is "it has no last run there" "$(on n2 iocom profile show sum | grep -c 'last run')" 0
tap_like "the class of another user: how to name the user" "$(on n2 iocom profile forget nothing 2>&1)" \
	"nothing is known about a class 'nothing' of yours; --user NAME names another user's"
tap_is "all of it" "$(on n2 iocom profile export | jq -S .)" "$(jq -S . "$file")"
tap_like "a known class is not replaced by mistake" "$(on n2 iocom profile import "$file" 2>&1)" 'is known already.*--force'
before=$(on n2 iocom profile export)
jq '.profiles[1].needs.cpu_ms = -1 | .profiles[0].runs = 99' "$file" >"$SCRATCH/bad.json"
tap_like "nonsense is named with its place" "$(on n2 iocom profile import --force "$SCRATCH/bad.json" 2>&1)" \
	'bad.json:[0-9]+:[0-9]+: profiles\[1\].needs.cpu_ms: expected a number that is not negative, found -1'
jq '.iocom_profiles = 7' "$file" >"$SCRATCH/bad.json"
tap_like "so is another version" "$(on n2 iocom profile import --force - 2>&1 <"$SCRATCH/bad.json")" 'version 7'
tap_is "and nothing of it was taken" "$(on n2 iocom profile export)" "$before"
tap_is "forget" "$(on n2 iocom profile forget sum; on n2 iocom profile show sum >/dev/null 2>&1; echo $?)" 1

# --- other users
tap_like "only root names a user" "$(on n1 setpriv --reuid 65534 --clear-groups iocom profile --user 0 2>&1)" 'only root'
tap_is "root does" "$(on n1 iocom profile set x --mem 1G --user 65534; on n1 iocom profile --user 65534 --json | jq -c '[.profiles[] | [.class, .uid]]')" \
	'[["x",65534]]'
tap_is "a user sees the own ones" "$(on n1 setpriv --reuid 65534 --clear-groups iocom profile --json | jq -c '[.profiles[].class]')" '["x"]'
tap_is "wrong usage" "$(on n1 iocom profile set sum 2>/dev/null; echo $?)$(on n1 iocom profile show 2>/dev/null; echo $?)$(
	on n1 iocom profile list --force 2>/dev/null; echo $?)$(on n1 iocom profile show a --mem 1G 2>/dev/null; echo $?)" 2222
tap_done
